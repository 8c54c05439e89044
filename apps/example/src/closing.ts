/** Closes the books when nothing moves any more: brokers may count late. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Books } from "./books.ts"

/** Milliseconds that a broker may take to count all its messages. */
const timeout = 60_000

/** Milliseconds between two reads of the broker's counts. */
const pollInterval = 100

/** Computes the books until they balance or `within` milliseconds have passed. */
export const close = async (
  takeBooks: () => Promise<Books>,
  say: (line: string) => void,
  within = timeout
): Promise<Books> => {
  const deadline = performance.now() + within
  let books = await takeBooks()
  if (!books.balanced) say(`The books do not balance yet: the broker may count late. Waiting up to ${within / 1000} s`)
  while (!books.balanced && performance.now() < deadline) {
    await sleep(pollInterval)
    books = await takeBooks()
  }
  return books
}
