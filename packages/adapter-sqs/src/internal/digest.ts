/** A short name for a text: the same for the same text, and for others most likely another one. Not for secrets. */

/** FNV-1a with 64 bits. http://www.isthe.com/chongo/tech/comp/fnv/ */
export const digest = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(16).padStart(16, "0")
}
