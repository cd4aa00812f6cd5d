"""The flat optimiser against torch's own."""

import torch
from torch import nn

from agents.optimizer import Adam, flatten


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def loss(net, k):
    x = torch.linspace(-1.0, 1.0 + k, 20, dtype=torch.float64).reshape(5, 4)
    return (net(x) - 3.0).square().sum()


def test_flattening_changes_no_value_and_shares_memory():
    net = network()
    before = [p.detach().clone() for p in net.parameters()]
    values, gradients = flatten(net)
    assert all(torch.equal(p, b) for p, b in zip(net.parameters(), before, strict=True))
    values.zero_()
    assert not any(p.any() for p in net.parameters())
    loss(net, 0).backward()
    assert torch.equal(gradients, torch.cat([p.grad.reshape(-1) for p in net.parameters()]))
    assert gradients.any()


def test_steps_are_those_of_torch():
    ours, theirs = network(), network()
    optimizer = Adam(ours, (0.7, 0.95))
    reference = torch.optim.Adam(theirs.parameters(), lr=0.0, betas=(0.7, 0.95))
    for k in range(20):
        rate = 0.05 * 0.9**k
        optimizer.zero()
        loss(ours, k).backward()
        norm = optimizer.clip(1.0)
        optimizer.step(rate)

        reference.param_groups[0]["lr"] = rate
        reference.zero_grad()
        loss(theirs, k).backward()
        expected = nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        reference.step()
        torch.testing.assert_close(norm, expected)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_clipping_leaves_a_small_gradient_alone():
    optimizer = Adam(network(), (0.9, 0.999))
    optimizer.gradients.fill_(1e-3)
    optimizer.clip(1.0)
    assert torch.equal(optimizer.gradients, torch.full_like(optimizer.gradients, 1e-3))


def test_loading_keeps_the_views_and_continues_exactly():
    first, second = network(), network()
    one, two = Adam(first, (0.9, 0.999)), Adam(second, (0.9, 0.999))

    def train(net, optimizer, k):
        optimizer.zero()
        loss(net, k).backward()
        optimizer.step(0.01)

    for k in range(5):
        train(first, one, k)
    second.load_state_dict({name: tensor.clone() for name, tensor in first.state_dict().items()})
    two.load_state_dict({name: tensor.clone() for name, tensor in one.state_dict().items()})
    for k in range(5, 10):
        train(first, one, k)
        train(second, two, k)
    assert torch.equal(one.values, two.values)
    assert torch.equal(two.values, torch.cat([p.detach().reshape(-1) for p in second.parameters()]))
