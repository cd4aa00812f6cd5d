"""What would change the motion and cannot be simulated is refused, and the element named."""

import pytest

from diffenvs.sim.load import load_model


def hinge(top: str = "", joint: str = "", body: str = "", world: str = "", end: str = "") -> str:
    """MJCF of one body on one joint, with something added."""
    rod = f'<body name="rod"><joint name="hip" {joint}/><geom name="tip" size="0.1"/>{body}</body>'
    return f"<mujoco>{top}<worldbody>{rod}{world}</worldbody>{end}</mujoco>"


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (
            hinge(end='<tendon><fixed name="rope"><joint joint="hip" coef="1"/></fixed></tendon>'),
            "tendon 'rope'",
        ),
        (hinge(end='<equality><joint name="lock" joint1="hip"/></equality>'), "equality constraint 'lock'"),
        (hinge(joint='frictionloss="0.2"'), "joint 'hip' has a friction loss of 0.2"),
        (hinge(joint='type="ball" stiffness="2"'), "ball joint 'hip' has a stiffness"),
        (hinge(joint='type="ball" range="0 30"'), "ball joint 'hip' has a range"),
        (hinge(joint='type="free" stiffness="2"'), "free joint 'hip' has a stiffness"),
        (hinge(joint='springyield="0.3" stiffness="2"'), "joint 'hip' has a plastic or nonlinear spring"),
        (hinge(joint='damping="0 1 0"'), "joint 'hip' has a plastic or nonlinear spring or damper"),
        (hinge(top='<option density="1.2"/>'), "a medium of density 1.2 and viscosity 0"),
        (hinge(top='<option><flag spring="disable"/></option>'), 'flag spring="disable"'),
        (hinge(world='<body name="hand" mocap="true"/>'), "motion-capture body 'hand'"),
        (hinge(world='<geom name="step" type="box" size="1 1 1"/>'), "geom 'step' is an obstacle"),
        (
            hinge(world='<body><geom name="step" type="box" size="1 1 1"/></body>'),
            "geom 'step' is an obstacle",
        ),
        (
            hinge(world='<geom name="slope" type="plane" size="1 1 1" euler="5 0 0"/>'),
            "geom 'slope' is an obstacle",
        ),
        (
            hinge(world='<geom name="high" type="plane" size="1 1 1" pos="0 0 1"/>'),
            "geom 'high' is an obstacle",
        ),
        (
            hinge(body='<body name="kite" gravcomp="1"><geom size="0.1"/></body>'),
            "gravity compensation of body 'kite'",
        ),
        (
            hinge(end='<actuator><muscle name="biceps" joint="hip" lengthrange="0 1"/></actuator>'),
            "actuator 'biceps' has dynamics",
        ),
        (
            hinge(end='<actuator><position name="lag" joint="hip" timeconst="0.1"/></actuator>'),
            "actuator 'lag' has dynamics",
        ),
        (
            hinge(end='<actuator><damper name="brake" joint="hip" kv="1" ctrlrange="0 1"/></actuator>'),
            "actuator 'brake' is neither",
        ),
        (
            hinge(end='<actuator><general name="odd" joint="hip" biastype="affine" biasprm="1 0 0"/></actuator>'),
            "actuator 'odd' is neither",
        ),
        (
            hinge(end='<actuator><motor name="pull" joint="hip" forcerange="-1 0"/></actuator>'),
            "actuator 'pull' has a force range that is not symmetric",
        ),
        (
            hinge(end='<actuator><motor name="rotor" joint="hip" armature="0.1"/></actuator>'),
            "actuator 'rotor' has an armature",
        ),
        (
            hinge(joint='type="ball"', end='<actuator><motor name="m" joint="hip"/></actuator>'),
            "actuator 'm' drives a joint that is neither",
        ),
        ("<mujoco/>", "it has no joint"),
    ],
)
def test_what_would_change_the_motion_is_refused_by_name(xml, words):
    with pytest.raises(ValueError, match="cannot be simulated") as caught:
        load_model(xml)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_plain_hinge_of_the_refused_cases_is_accepted():
    assert load_model(hinge()).contact_name == ("tip",)
    assert load_model(hinge(world='<geom type="plane" size="1 1 1"/>')).ncontact == 1
