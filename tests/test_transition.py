import torch

from diffenvs.transition import fork


def test_a_fork_is_the_same_tensor_with_a_node_of_its_own():
    plain = torch.ones(2)
    assert fork(plain) is plain
    leaf = torch.ones(2, requires_grad=True)
    branch = fork(leaf)
    assert branch is not leaf
    assert branch.data_ptr() == leaf.data_ptr()
    (branch * 3.0).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
