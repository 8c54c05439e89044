/** A short name for bytes: the same for the same bytes, and for others most likely another one. Not for secrets. */

/** FNV-1a with 64 bits. http://www.isthe.com/chongo/tech/comp/fnv/ */
export const digest = (parts: ReadonlyArray<Uint8Array | string>): string => {
  let [high, low] = [0xcbf29ce4, 0x84222325]
  for (const part of parts) {
    for (const byte of typeof part === "string" ? Buffer.from(part) : part) {
      low = (low ^ byte) >>> 0
      // Times 2^40 + 0x1b3, in two halves.
      const product = low * 0x1b3
      high = (Math.imul(high, 0x1b3) + Math.floor(product / 2 ** 32) + (low << 8)) >>> 0
      low = product >>> 0
    }
  }
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0")
}
