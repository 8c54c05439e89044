/** Errors that close a connection, and the numbers of commands. */

/** An error of a command. nsqd sends its message, and closes the connection. */
export class Fatal extends Error {}

/** Returns the milliseconds of a command. As in nsqd, a very large number overflows. */
export const millisOf = (command: string, text: string): number => {
  if (!/^\d+$/.test(text)) throw new Fatal(`E_INVALID ${command} could not parse timeout ${text}`)
  return Number(BigInt.asIntN(64, BigInt(text) * 1_000_000n) / 1_000_000n)
}
