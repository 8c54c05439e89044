/** Bytes as hexadecimal digits, for bodies that are not a text. */

/** The most bytes that are shown. */
export const longest = 4096

const line = (bytes: Uint8Array, offset: number): string => {
  const part = bytes.subarray(offset, offset + 16)
  const digits = [...part].map((byte) => byte.toString(16).padStart(2, "0"))
  const text = [...part].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "."))
  return `${offset.toString(16).padStart(8, "0")}  ${digits.join(" ").padEnd(47)}  ${text.join("")}`
}

/** The first bytes, 16 a line. */
export const dump = (bytes: Uint8Array): string => {
  const shown = bytes.subarray(0, longest)
  return Array.from({ length: Math.ceil(shown.length / 16) }, (_, index) => line(shown, index * 16)).join("\n")
}
