"""Bodies of every geometry that touches the ground, and joints that have a range."""

# A wedge of 0.3 x 0.2 x 0.2 m: six corners, and a vertex inside of them.
WEDGE = '<mesh name="wedge" vertex="0 0 0 .3 0 0 0 .2 0 .3 .2 0 0 0 .2 .3 0 .2 .1 .05 .05"/>'
SHAPES = {
    "sphere": '<geom name="shape" type="sphere" size=".1" mass="3"/>',
    "capsule": '<geom name="shape" type="capsule" size=".05 .2" euler="0 90 0" mass="3"/>',
    "box": '<geom name="shape" type="box" size=".2 .15 .1" mass="3"/>',
    "cylinder": '<geom name="shape" type="cylinder" size=".1 .2" mass="3"/>',
    "mesh": '<geom name="shape" type="mesh" mesh="wedge" mass="3"/>',
}


def body(shape: str, joints: str = "<freejoint/>") -> str:
    """MJCF of one shape, its body's origin one metre high."""
    return f"""<mujoco model="{shape}"><option gravity="0 0 -9.81"/><asset>{WEDGE}</asset><worldbody>
      <body name="body" pos="0 0 1">{joints}{SHAPES[shape]}</body></worldbody></mujoco>"""


# A box with a capsule on a hinge, a cylinder on a slide and a mesh; every joint but one has a range.
EVERYTHING = f"""<mujoco model="everything"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
  <asset>{WEDGE}</asset><default><joint damping=".1" armature=".02"/></default><worldbody>
  <body name="trunk" pos="0 0 .3"><freejoint/><geom type="box" size=".2 .15 .1" mass="3"/>
    <geom type="sphere" size=".1" pos="0 0 .15" mass=".2"/>
    <body name="arm" pos=".25 0 0"><joint name="shoulder" axis="0 1 0" range="-.4 .6"/>
      <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0" mass=".5"/>
      <body name="hand" pos=".3 0 0"><joint name="reach" type="slide" axis="1 0 0" range="-.05 .1"/>
        <geom type="cylinder" size=".06 .04" pos=".05 0 0" mass=".4"/></body></body>
    <body name="tail" pos="-.25 0 0"><joint name="wag" axis="0 0 1"/><joint name="lift" axis="0 1 0" range="-.5 .2"/>
      <geom type="mesh" mesh="wedge" pos="-.1 0 0" mass=".7"/></body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="reach"/><motor joint="wag"/><motor joint="lift"/>
  </actuator></mujoco>"""

# A trunk on four capsules, each of two links with a range.
_LEGS = "".join(
    f"""<body pos="{x} {y} 0"><joint name="hip{i}" axis="0 1 0" range="-.6 .6"/>
      <geom type="capsule" size=".04" fromto="0 0 0 {0.3 * x} {0.3 * y} -.2" mass=".6"/>
      <body pos="{0.3 * x} {0.3 * y} -.2"><joint name="knee{i}" axis="0 1 0" range="-1 .1"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 0 -.25" mass=".3"/></body></body>"""
    for i, (x, y) in enumerate([(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)])
)
CRAWLER = f"""<mujoco model="crawler"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
  <default><joint damping=".2" armature=".01"/></default><worldbody><body name="trunk" pos="0 0 .7"><freejoint/>
  <geom type="capsule" size=".08" fromto="-.25 0 0 .25 0 0" mass="5"/>{_LEGS}</body></worldbody></mujoco>"""

# A mass that falls along z and a wheel that a motor turns about it, both up to a stop on either side.
STOPS = """<mujoco model="stops"><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="lift" pos="0 0 1"><joint name="lift" type="slide" axis="0 0 1" range="-.2 .3"/>
    <geom type="sphere" size=".01" mass="2" contype="0" conaffinity="0"/>
    <body name="wheel"><joint name="turn" axis="0 0 1" range="-.5 .7"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".04 .04 .08"/></body></body></worldbody>
  <actuator><motor joint="lift"/><motor joint="turn"/></actuator></mujoco>"""
