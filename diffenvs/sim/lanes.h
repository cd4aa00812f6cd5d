// A scalar of DIFFENVS_LANES floats, one world each, that takes the place of `float` in the C++ that Warp generates.
//
// Warp includes this after its own headers, whose templates for vectors, matrices and their adjoints take any scalar
// with these operators. What those headers spell out for float alone is spelled out here for lanes. No function
// branches on a number: where lanes differ, both sides are computed and one is picked.

#define DIFFENVS_INLINE inline __attribute__((always_inline))

namespace wp {

typedef float lanes_f __attribute__((ext_vector_type(DIFFENVS_LANES)));
typedef int lanes_i __attribute__((ext_vector_type(DIFFENVS_LANES)));

struct lanes {
    lanes_f v;
    lanes() = default;
    DIFFENVS_INLINE lanes(lanes_f x) : v(x) {}
    DIFFENVS_INLINE lanes(float x) : v((lanes_f)x) {}
    DIFFENVS_INLINE lanes(double x) : v((lanes_f)(float)x) {}
    DIFFENVS_INLINE lanes(int x) : v((lanes_f)(float)x) {}
    DIFFENVS_INLINE lanes& operator+=(lanes o) { v += o.v; return *this; }
    DIFFENVS_INLINE lanes& operator-=(lanes o) { v -= o.v; return *this; }
    DIFFENVS_INLINE lanes& operator*=(lanes o) { v *= o.v; return *this; }
    DIFFENVS_INLINE lanes& operator/=(lanes o) { v /= o.v; return *this; }
};

DIFFENVS_INLINE lanes operator+(lanes a, lanes b) { return lanes(a.v + b.v); }
DIFFENVS_INLINE lanes operator-(lanes a, lanes b) { return lanes(a.v - b.v); }
DIFFENVS_INLINE lanes operator*(lanes a, lanes b) { return lanes(a.v * b.v); }
DIFFENVS_INLINE lanes operator/(lanes a, lanes b) { return lanes(a.v / b.v); }
DIFFENVS_INLINE lanes operator-(lanes a) { return lanes(-a.v); }
DIFFENVS_INLINE lanes pick(lanes_i mask, lanes a, lanes b) { return lanes(mask ? a.v : b.v); }

// arithmetic and comparisons, as Warp names them

DIFFENVS_INLINE lanes add(lanes a, lanes b) { return a + b; }
DIFFENVS_INLINE lanes sub(lanes a, lanes b) { return a - b; }
DIFFENVS_INLINE lanes mul(lanes a, lanes b) { return a * b; }
DIFFENVS_INLINE lanes div(lanes a, lanes b) { return a / b; }
DIFFENVS_INLINE lanes min(lanes a, lanes b) { return pick(a.v < b.v, a, b); }
DIFFENVS_INLINE lanes max(lanes a, lanes b) { return pick(a.v > b.v, a, b); }
DIFFENVS_INLINE lanes clamp(lanes x, lanes low, lanes high) { return min(max(low, x), high); }
DIFFENVS_INLINE lanes step(lanes x) { return pick(x.v < 0.0f, lanes(1.0f), lanes(0.0f)); }
DIFFENVS_INLINE lanes abs(lanes x) { return lanes(__builtin_elementwise_abs(x.v)); }
DIFFENVS_INLINE lanes sqrt(lanes x) { return lanes(__builtin_elementwise_sqrt(x.v)); }

DIFFENVS_INLINE void adj_add(lanes, lanes, lanes& da, lanes& db, lanes g) { da += g; db += g; }
DIFFENVS_INLINE void adj_sub(lanes, lanes, lanes& da, lanes& db, lanes g) { da += g; db -= g; }
DIFFENVS_INLINE void adj_mul(lanes a, lanes b, lanes& da, lanes& db, lanes g) { da += b * g; db += a * g; }
DIFFENVS_INLINE void adj_div(lanes, lanes b, lanes ret, lanes& da, lanes& db, lanes g)
{
    lanes q = g / b;
    da += q;
    db -= q * ret;
}
DIFFENVS_INLINE void adj_min(lanes a, lanes b, lanes& da, lanes& db, lanes g)
{
    da += pick(a.v < b.v, g, 0.0f);
    db += pick(a.v < b.v, 0.0f, g);
}
DIFFENVS_INLINE void adj_max(lanes a, lanes b, lanes& da, lanes& db, lanes g)
{
    da += pick(a.v > b.v, g, 0.0f);
    db += pick(a.v > b.v, 0.0f, g);
}
DIFFENVS_INLINE void adj_clamp(lanes x, lanes low, lanes high, lanes& dx, lanes& dlow, lanes& dhigh, lanes g)
{
    lanes raised_bar(0.0f);
    adj_min(max(low, x), high, raised_bar, dhigh, g);
    adj_max(low, x, dlow, dx, raised_bar);
}
DIFFENVS_INLINE void adj_step(lanes, lanes&, lanes) {}
DIFFENVS_INLINE void adj_sqrt(lanes, lanes ret, lanes& dx, lanes g) { dx += lanes(0.5f) / ret * g; }

// sine, cosine and exponential: Cephes' reductions and polynomials (Moshier), within two units in the last place

DIFFENVS_INLINE void sincos(lanes angle, lanes& sine, lanes& cosine)
{
    lanes_f n = __builtin_elementwise_roundeven(angle.v * 0.636619772367581343f);
    lanes_f y = angle.v - n * 1.5703125f;
    y = y - n * 4.837512969970703125e-4f;
    y = y - n * 7.54978995489188e-8f;
    lanes_i quadrant = __builtin_convertvector(n, lanes_i);
    lanes_f z = y * y;
    lanes_f s = y + y * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
    lanes_f c = 4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f);
    c = 1.0f - 0.5f * z + z * z * c;
    lanes_i odd = (quadrant & 1) != 0;
    lanes_f a = odd ? c : s, b = odd ? s : c;
    sine.v = ((quadrant & 2) != 0) ? -a : a;
    cosine.v = (((quadrant + 1) & 2) != 0) ? -b : b;
}
DIFFENVS_INLINE lanes sin(lanes x) { lanes s, c; sincos(x, s, c); return s; }
DIFFENVS_INLINE lanes cos(lanes x) { lanes s, c; sincos(x, s, c); return c; }
DIFFENVS_INLINE lanes exp(lanes power)
{
    // beyond, float has no normal number; a power that is not a number stays what it is
    lanes_f x = pick(power.v < -87.3f, lanes(-87.3f), pick(power.v > 88.37f, lanes(88.37f), power)).v;
    lanes_f n = __builtin_elementwise_floor(x * 1.44269504088896341f + 0.5f);
    x = x - n * 0.693359375f;
    x = x - n * -2.12194440e-4f;
    lanes_f y = x * 1.9875691500e-4f + 1.3981999507e-3f;
    y = y * x + 8.3334519073e-3f;
    y = y * x + 4.1665795894e-2f;
    y = y * x + 1.6666665459e-1f;
    y = y * x + 5.0000001201e-1f;
    y = y * x * x + x + 1.0f;
    lanes_i exponent = (__builtin_convertvector(n, lanes_i) + 127) << 23;
    return lanes(y * __builtin_bit_cast(lanes_f, exponent));
}
DIFFENVS_INLINE void adj_sin(lanes x, lanes& dx, lanes g) { dx += cos(x) * g; }
DIFFENVS_INLINE void adj_cos(lanes x, lanes& dx, lanes g) { dx -= sin(x) * g; }
DIFFENVS_INLINE void adj_exp(lanes, lanes ret, lanes& dx, lanes g) { dx += ret * g; }

// conversions from the numbers that kernels take by value; nothing flows back into those

DIFFENVS_INLINE void adj_float32(double, double&, lanes) {}
DIFFENVS_INLINE void adj_float32(int, int&, lanes) {}
DIFFENVS_INLINE void adj_float32(float, float&, lanes) {}
DIFFENVS_INLINE void adj_float32(lanes, lanes& dx, lanes g) { dx += g; }

// vectors and matrices: Warp's own branch on a length, or on a determinant, of zero

DIFFENVS_INLINE lanes reciprocal_or_zero(lanes x) { return pick(x.v != 0.0f, lanes(1.0f) / x, lanes(0.0f)); }
#define DIFFENVS_NORMALIZE(N) \
    DIFFENVS_INLINE vec_t<N, lanes> normalize(vec_t<N, lanes> a) { return a * reciprocal_or_zero(sqrt(dot(a, a))); } \
    DIFFENVS_INLINE void adj_normalize( \
        vec_t<N, lanes> a, vec_t<N, lanes>& ret, vec_t<N, lanes>& da, const vec_t<N, lanes>& g \
    ) \
    { \
        lanes i = reciprocal_or_zero(sqrt(dot(a, a))); \
        da += g * i - ret * dot(ret, g) * i; \
    }
DIFFENVS_NORMALIZE(3)
DIFFENVS_NORMALIZE(4)
DIFFENVS_INLINE mat_t<3, 3, lanes> inverse(const mat_t<3, 3, lanes>& m)
{
    lanes a = m.data[0][0], b = m.data[0][1], c = m.data[0][2], d = m.data[1][0], e = m.data[1][1], f = m.data[1][2],
          g = m.data[2][0], h = m.data[2][1], i = m.data[2][2];
    lanes A = e * i - f * h, B = f * g - d * i, C = d * h - e * g;
    lanes r = reciprocal_or_zero(a * A + b * B + c * C);
    return mat_t<3, 3, lanes>(
        A * r, (c * h - b * i) * r, (b * f - c * e) * r, B * r, (a * i - c * g) * r, (c * d - a * f) * r, C * r,
        (b * g - a * h) * r, (a * e - b * d) * r
    );
}

// Access to arrays: an index is never negative, and entries of a row lie one after another, `Workspace` has them so.

template <typename T> DIFFENVS_INLINE T& entry(void* data, size_t bytes, int last)
{
    return *(T*)((char*)data + bytes + (size_t)last * sizeof(T));
}
#define DIFFENVS_INDEX(TEMPLATE, ...) \
    TEMPLATE DIFFENVS_INLINE __VA_ARGS__& index(const array_t<__VA_ARGS__>& a, int i) \
    { return entry<__VA_ARGS__>(a.data, (size_t)i * a.strides[0], 0); } \
    TEMPLATE DIFFENVS_INLINE __VA_ARGS__& index(const array_t<__VA_ARGS__>& a, int i, int j) \
    { return entry<__VA_ARGS__>(a.data, (size_t)i * a.strides[0], j); } \
    TEMPLATE DIFFENVS_INLINE __VA_ARGS__& index(const array_t<__VA_ARGS__>& a, int i, int j, int k) \
    { return entry<__VA_ARGS__>(a.data, (size_t)i * a.strides[0] + (size_t)j * a.strides[1], k); } \
    TEMPLATE DIFFENVS_INLINE __VA_ARGS__& index_grad(const array_t<__VA_ARGS__>& a, int i) \
    { return entry<__VA_ARGS__>(a.grad, (size_t)i * a.strides[0], 0); } \
    TEMPLATE DIFFENVS_INLINE __VA_ARGS__& index_grad(const array_t<__VA_ARGS__>& a, int i, int j) \
    { return entry<__VA_ARGS__>(a.grad, (size_t)i * a.strides[0], j); }
#define DIFFENVS_COMMA ,
DIFFENVS_INDEX(, lanes)
DIFFENVS_INDEX(template <unsigned N>, vec_t<N, lanes>)
DIFFENVS_INDEX(template <unsigned R DIFFENVS_COMMA unsigned C>, mat_t<R, C, lanes>)
DIFFENVS_INLINE int& index(const array_t<int>& a, int i) { return a.data[i]; }
DIFFENVS_INLINE int& index(const array_t<int>& a, int i, int j) { return entry<int>(a.data, (size_t)i * a.strides[0], j); }

}  // namespace wp

#define float32 lanes
