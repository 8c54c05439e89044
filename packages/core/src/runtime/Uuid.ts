/** Random UUIDs whose text is in one piece. */

/**
 * Returns a random UUID. Node joins it from 20 pieces, and V8 keeps them until the text is read: 490 bytes instead of 65, which
 * burden each garbage collection while the message waits.
 */
export const make = (): string => {
  const uuid = crypto.randomUUID()
  // It is a hexadecimal digit. A compiler would leave out a read without a use.
  return uuid.charCodeAt(20) === 0 ? "" : uuid
}
