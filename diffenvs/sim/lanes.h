// One SIMD lane per world: Warp inserts this after its own headers; from here on the generated code's name
// `float32` means `lanes`, DIFFENVS_LANES floats side by side.
#define WP_INL inline __attribute__((always_inline))
namespace wp {
typedef float lanes_v __attribute__((ext_vector_type(DIFFENVS_LANES)));
typedef int lanes_i __attribute__((ext_vector_type(DIFFENVS_LANES)));
struct lanes {
    lanes_v v;
    lanes() = default;
    WP_INL lanes(lanes_v x) : v(x) {}
    WP_INL lanes(float x) : v((lanes_v)x) {}
    WP_INL lanes(double x) : v((lanes_v)(float)x) {}
    WP_INL lanes(int x) : v((lanes_v)(float)x) {}
    WP_INL lanes& operator+=(lanes o) { v += o.v; return *this; }
    WP_INL lanes& operator-=(lanes o) { v -= o.v; return *this; }
    WP_INL lanes& operator*=(lanes o) { v *= o.v; return *this; }
    WP_INL lanes& operator/=(lanes o) { v /= o.v; return *this; }
};
#define OP(o) WP_INL lanes operator o(lanes a, lanes b) { return lanes(a.v o b.v); }
OP(+) OP(-) OP(*) OP(/)
#undef OP
WP_INL lanes operator-(lanes a) { return lanes(-a.v); }
WP_INL lanes pick(lanes_i m, lanes a, lanes b) { return lanes(m ? a.v : b.v); }
WP_INL lanes mul(lanes a, lanes b) { return lanes(a.v * b.v); }
WP_INL lanes add(lanes a, lanes b) { return lanes(a.v + b.v); }
WP_INL lanes sub(lanes a, lanes b) { return lanes(a.v - b.v); }
WP_INL lanes div(lanes a, lanes b) { return lanes(a.v / b.v); }
WP_INL lanes min(lanes a, lanes b) { return pick(a.v <= b.v, a, b); }
WP_INL lanes max(lanes a, lanes b) { return pick(a.v >= b.v, a, b); }
WP_INL lanes clamp(lanes x, lanes a, lanes b) { return min(max(a, x), b); }
WP_INL lanes step(lanes x) { return pick(x.v < 0.0f, lanes(1.0f), lanes(0.0f)); }
WP_INL lanes sqrt(lanes x) { return lanes(__builtin_elementwise_sqrt(x.v)); }
WP_INL lanes abs(lanes x) { return lanes(__builtin_elementwise_abs(x.v)); }
WP_INL void adj_step(lanes, lanes&, lanes) {}
WP_INL void adj_mul(lanes a, lanes b, lanes& da, lanes& db, lanes r) { da += b * r; db += a * r; }
WP_INL void adj_add(lanes, lanes, lanes& da, lanes& db, lanes r) { da += r; db += r; }
WP_INL void adj_sub(lanes, lanes, lanes& da, lanes& db, lanes r) { da += r; db -= r; }
WP_INL void adj_div(lanes a, lanes b, lanes ret, lanes& da, lanes& db, lanes r) { lanes q = r / b; da += q; db -= q * ret; }
WP_INL void adj_min(lanes a, lanes b, lanes& da, lanes& db, lanes r) { lanes_i m = a.v < b.v; da += pick(m, r, 0.0f); db += pick(m, 0.0f, r); }
WP_INL void adj_max(lanes a, lanes b, lanes& da, lanes& db, lanes r) { lanes_i m = a.v > b.v; da += pick(m, r, 0.0f); db += pick(m, 0.0f, r); }
WP_INL void adj_clamp(lanes x, lanes a, lanes b, lanes& dx, lanes& da, lanes& db, lanes r)
{ lanes m = max(a, x); lanes dm(0.0f); adj_min(m, b, dm, db, r); adj_max(a, x, da, dx, dm); }
WP_INL void adj_sqrt(lanes x, lanes ret, lanes& dx, lanes r) { dx += lanes(0.5f) / ret * r; }
WP_INL void sincos_lanes(lanes xl, lanes& s, lanes& c)
{
    lanes_v x = xl.v;
    lanes_v n = __builtin_elementwise_roundeven(x * 0.636619772367581343f);
    lanes_v y = x - n * 1.5703125f;
    y = y - n * 4.837512969970703125e-4f;
    y = y - n * 7.54978995489188e-8f;
    lanes_i q = __builtin_convertvector(n, lanes_i);
    lanes_v z = y * y;
    lanes_v ps = y + y * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
    lanes_v pc = 1.0f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
    lanes_i odd = (q & 1) != 0;
    lanes_v a = odd ? pc : ps, b = odd ? ps : pc;
    s.v = ((q & 2) != 0) ? -a : a;
    c.v = (((q + 1) & 2) != 0) ? -b : b;
}
WP_INL lanes sin(lanes x) { lanes s, c; sincos_lanes(x, s, c); return s; }
WP_INL lanes cos(lanes x) { lanes s, c; sincos_lanes(x, s, c); return c; }
WP_INL void adj_sin(lanes x, lanes& dx, lanes r) { dx += cos(x) * r; }
WP_INL void adj_cos(lanes x, lanes& dx, lanes r) { dx -= sin(x) * r; }
WP_INL lanes exp(lanes xl)
{
    lanes_v x = min(max(xl, lanes(-87.3f)), lanes(88.37f)).v;
    lanes_v n = __builtin_elementwise_floor(x * 1.44269504088896341f + 0.5f);
    x = x - n * 0.693359375f; x = x - n * -2.12194440e-4f;
    lanes_v y = 1.9875691500e-4f + x * 0.0f;
    y = y * x + 1.3981999507e-3f; y = y * x + 8.3334519073e-3f; y = y * x + 4.1665795894e-2f;
    y = y * x + 1.6666665459e-1f; y = y * x + 5.0000001201e-1f; y = y * x * x + x + 1.0f;
    lanes_i e = (__builtin_convertvector(n, lanes_i) + 127) << 23;
    return lanes(y * __builtin_bit_cast(lanes_v, e));
}
WP_INL void adj_exp(lanes a, lanes ret, lanes& da, lanes r) { da += ret * r; }
WP_INL void adj_float32(double, double&, lanes) {}
WP_INL void adj_float32(int, int&, lanes) {}
WP_INL void adj_float32(float, float&, lanes) {}
WP_INL void adj_float32(lanes, lanes& d, lanes r) { d += r; }
template <unsigned N> WP_INL vec_t<N, lanes> normalize(vec_t<N, lanes> a)
{ lanes l = sqrt(dot(a, a)); lanes i = pick(l.v > 0.0f, lanes(1.0f) / l, lanes(0.0f)); return a * i; }
template <unsigned N> WP_INL void adj_normalize(vec_t<N, lanes> a, vec_t<N, lanes>& ret, vec_t<N, lanes>& da, const vec_t<N, lanes>& r)
{ lanes l = sqrt(dot(a, a)); lanes i = pick(l.v > 0.0f, lanes(1.0f) / l, lanes(0.0f)); da += r * i - ret * (dot(ret, r)) * i; }
WP_INL mat_t<3, 3, lanes> inverse(const mat_t<3, 3, lanes>& m)
{
    lanes a = m.data[0][0], b = m.data[0][1], c = m.data[0][2], d = m.data[1][0], e = m.data[1][1], f = m.data[1][2],
          g = m.data[2][0], h = m.data[2][1], i = m.data[2][2];
    lanes A = e * i - f * h, B = f * g - d * i, C = d * h - e * g;
    lanes det = a * A + b * B + c * C;
    lanes r = pick(det.v != 0.0f, lanes(1.0f) / det, lanes(0.0f));
    return mat_t<3, 3, lanes>(A * r, (c * h - b * i) * r, (b * f - c * e) * r, B * r, (a * i - c * g) * r, (c * d - a * f) * r,
                              C * r, (b * g - a * h) * r, (a * e - b * d) * r);
}

// Array access: no negative indices, and the last index has unit stride (all arrays of this package are so).
#define LANE_INDEX(TPL, ...) \
TPL WP_INL __VA_ARGS__& index(const array_t<__VA_ARGS__>& a, int i) { return *(__VA_ARGS__*)((char*)a.data + (size_t)i * a.strides[0]); } \
TPL WP_INL __VA_ARGS__& index(const array_t<__VA_ARGS__>& a, int i, int j) { return *(__VA_ARGS__*)((char*)a.data + (size_t)i * a.strides[0] + (size_t)j * sizeof(__VA_ARGS__)); } \
TPL WP_INL __VA_ARGS__& index(const array_t<__VA_ARGS__>& a, int i, int j, int k) { return *(__VA_ARGS__*)((char*)a.data + (size_t)i * a.strides[0] + (size_t)j * a.strides[1] + (size_t)k * sizeof(__VA_ARGS__)); } \
TPL WP_INL __VA_ARGS__& index_grad(const array_t<__VA_ARGS__>& a, int i) { return *(__VA_ARGS__*)((char*)a.grad + (size_t)i * a.strides[0]); } \
TPL WP_INL __VA_ARGS__& index_grad(const array_t<__VA_ARGS__>& a, int i, int j) { return *(__VA_ARGS__*)((char*)a.grad + (size_t)i * a.strides[0] + (size_t)j * sizeof(__VA_ARGS__)); }
#define NONE
LANE_INDEX(NONE, lanes)
LANE_INDEX(template <unsigned N>, vec_t<N, lanes>)
#define COMMA ,
LANE_INDEX(template <unsigned R COMMA unsigned C>, mat_t<R, C, lanes>)
WP_INL int& index(const array_t<int>& a, int i) { return a.data[i]; }
WP_INL int& index(const array_t<int>& a, int i, int j) { return *(int*)((char*)a.data + (size_t)i * a.strides[0] + (size_t)j * sizeof(int)); }
}  // namespace wp
#define float32 lanes
