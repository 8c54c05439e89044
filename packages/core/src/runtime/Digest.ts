/**
 * Digests: short names for bytes. Different bytes almost always have different digests.
 *
 * When to use: for a native name that would be too long or invalid, and for the id of a foreign message without one. Do
 * not use it for secrets, or where an attacker may try to make two digests equal.
 */

/** Returns the digest of all parts: FNV-1a, 64 bits, 16 hexadecimal digits. http://www.isthe.com/chongo/tech/comp/fnv/ */
export const hex = (...parts: ReadonlyArray<Uint8Array | string>): string => {
  let [high, low] = [0xcbf29ce4, 0x84222325]
  for (const part of parts) {
    for (const byte of typeof part === "string" ? new TextEncoder().encode(part) : part) {
      low = (low ^ byte) >>> 0
      // Times 2^40 + 0x1b3, in two halves.
      const product = low * 0x1b3
      high = (Math.imul(high, 0x1b3) + Math.floor(product / 2 ** 32) + (low << 8)) >>> 0
      low = product >>> 0
    }
  }
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0")
}
