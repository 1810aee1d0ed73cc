//! Numbers with a fraction, in all formats that compilers have for them.

/// Mantissa times two to the power of the exponent.
struct Float {
    is_negative: bool,
    mantissa: u128,
    exponent: i32,
    /// So many digits tell it from the next ones.
    digits: usize,
}

/// How many bits of a number are what.
struct Format {
    exponent: u32,
    fraction: u32,
    /// The first bit of the mantissa is written down.
    is_explicit: bool,
}

const HALF: Format = Format { exponent: 5, fraction: 10, is_explicit: false };
const BRAIN: Format = Format { exponent: 8, fraction: 7, is_explicit: false };
const X87: Format = Format { exponent: 15, fraction: 63, is_explicit: true };
const QUAD: Format = Format { exponent: 15, fraction: 112, is_explicit: false };

/// A number of so many bytes, whose type has a name; none if that is no such number.
pub fn text(bytes: &[u8], name: &str) -> Option<String> {
    let is_quad = ["_Float128", "__float128", "f128"].contains(&name);
    let format = match (bytes, name) {
        ([a, b, c, d], _) => return Some(short(f32::from_le_bytes([*a, *b, *c, *d]))),
        ([a, b, c, d, e, f, g, h], _) => {
            return Some(short(f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])));
        }
        (_, "__bf16" | "std::bfloat16_t") if bytes.len() == 2 => BRAIN,
        _ if bytes.len() == 2 => HALF,
        _ if bytes.len() == 16 && is_quad => QUAD,
        _ if (10..=16).contains(&bytes.len()) => X87,
        _ => return None,
    };
    Some(format.read(bytes).map_or_else(|told| told.to_owned(), |float| float.text()))
}

/// Of very large and very small numbers, the digits and the power of ten.
fn short<F: Copy + Into<f64> + std::fmt::Display + std::fmt::LowerExp>(number: F) -> String {
    let size = number.into().abs();
    if size == 0.0 || (1e-5..1e17).contains(&size) || !size.is_finite() {
        number.to_string()
    } else {
        format!("{number:e}")
    }
}

impl Format {
    /// The number, or what it is else.
    fn read(&self, bytes: &[u8]) -> Result<Float, &'static str> {
        let mut word = [0; 16];
        word.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        let word = u128::from_le_bytes(word);
        let written = self.fraction + u32::from(self.is_explicit);
        let most = (1i32 << self.exponent) - 1;
        let power = (word >> written) as i32 & most;
        let is_negative = word >> (written + self.exponent) & 1 == 1;
        let fraction = word & ((1 << self.fraction) - 1);
        if power == most {
            return Err(match (fraction, is_negative) {
                (0, false) => "inf",
                (0, true) => "-inf",
                _ => "NaN",
            });
        }
        let first = match self.is_explicit {
            true => word >> self.fraction & 1,
            false => u128::from(power != 0),
        };
        let exponent = power.max(1) - most / 2 - self.fraction as i32;
        let digits = (f64::from(self.fraction + 1) * std::f64::consts::LOG10_2) as usize + 2;
        Ok(Float { is_negative, mantissa: first << self.fraction | fraction, exponent, digits })
    }
}

impl Float {
    fn text(&self) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        if self.mantissa == 0 {
            return format!("{sign}0");
        }
        let zeros = self.mantissa.trailing_zeros();
        let (mantissa, exponent) = (self.mantissa >> zeros, self.exponent + zeros as i32);
        let bits = 128 - mantissa.leading_zeros() as i32;
        // Most are numbers of the usual format as well, of which the shortest text is known.
        if bits <= 53 && exponent >= -1022 && exponent + bits <= 1024 {
            return format!("{sign}{}", short(mantissa as f64 * 2f64.powi(exponent)));
        }
        let (digits, power) = decimal(mantissa, exponent, self.digits);
        let (first, rest) = digits.split_at(1);
        let whole = usize::try_from(power).ok().filter(|whole| *whole < self.digits);
        let text = match (whole, rest) {
            (Some(whole), _) if rest.len() > whole => {
                format!("{first}{}.{}", &rest[..whole], &rest[whole..])
            }
            (Some(whole), _) => format!("{digits}{}", "0".repeat(whole - rest.len())),
            (None, _) if (-5..0).contains(&power) => {
                format!("0.{}{digits}", "0".repeat((-power - 1) as usize))
            }
            (None, "") => format!("{first}e{power}"),
            (None, _) => format!("{first}.{rest}e{power}"),
        };
        format!("{sign}{text}")
    }
}

/// The first digits of a number, rounded and without zeros at the end, and the power of ten of the
/// first one.
fn decimal(mantissa: u128, exponent: i32, most: usize) -> (String, i32) {
    const LIMB: u64 = 1_000_000_000;
    // The lowest first.
    let mut limbs: Vec<u64> = Vec::new();
    let mut rest = mantissa;
    while rest > 0 {
        limbs.push((rest % u128::from(LIMB)) as u64);
        rest /= u128::from(LIMB);
    }
    // Halves are five tenths.
    let factor = if exponent < 0 { 5 } else { 2 };
    for _ in 0..exponent.unsigned_abs() {
        let mut carry = 0;
        for limb in &mut limbs {
            let product = *limb * factor + carry;
            (*limb, carry) = (product % LIMB, product / LIMB);
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let mut digits = limbs.last().map_or(String::new(), u64::to_string);
    digits.extend(limbs.iter().rev().skip(1).map(|limb| format!("{limb:09}")));
    let mut power = digits.len() as i32 - 1 + exponent.min(0);
    if digits.len() > most {
        let is_up = digits.as_bytes()[most] >= b'5';
        digits.truncate(most);
        if is_up {
            let kept = digits.trim_end_matches('9').to_owned();
            digits = match kept.chars().last() {
                Some(last) => {
                    let up = char::from(last as u8 + 1);
                    format!("{}{up}", &kept[..kept.len() - 1])
                }
                None => {
                    power += 1;
                    "1".to_owned()
                }
            };
        }
    }
    (digits.trim_end_matches('0').to_owned(), power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_formats_are_read() {
        let x87 = |mantissa: u64, top: u16| {
            text(&[&mantissa.to_le_bytes()[..], &top.to_le_bytes()[..]].concat(), "long double")
        };
        for (mantissa, top, told) in [
            (1 << 63, 0x3fff, "1"),
            (0xa << 60, 0xc000, "-2.5"),
            (0xc90f_daa2_2168_c235, 0x4000, "3.14159265358979323851"),
            (u64::MAX, 0x7ffe, "1.18973149535723176502e4932"),
            (0, 0x8000, "-0"),
            (1 << 63, 0x7fff, "inf"),
            (0xcccc_cccc_cccc_cccd, 0x3ffb, "0.100000000000000000001"),
            (1, 0, "3.64519953188247460253e-4951"),
            (u64::MAX, 0x403e, "18446744073709551615"),
        ] {
            assert_eq!(x87(mantissa, top).as_deref(), Some(told));
        }
        let quad = |word: u128| text(&word.to_le_bytes(), "_Float128");
        assert_eq!(quad(0x3fff_8000 << 96).as_deref(), Some("1.5"));
        let third = quad(0x3ffd_5555_5555_5555_5555_5555_5555_5555);
        assert_eq!(third.as_deref(), Some("0.333333333333333333333333333333333317"));
        assert_eq!(text(&0x3e00u16.to_le_bytes(), "_Float16").as_deref(), Some("1.5"));
        assert_eq!(text(&1u16.to_le_bytes(), "_Float16").as_deref(), Some("5.960464477539063e-8"));
        assert_eq!(text(&0x3fc0u16.to_le_bytes(), "__bf16").as_deref(), Some("1.5"));
        assert_eq!(text(&[0; 3], "other"), None);
    }
}
