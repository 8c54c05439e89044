/** Closes the books once nothing moves any more: they are final when they balance, or when the broker had its time. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Books } from "./books.ts"

/** In milliseconds: the time that a broker has to count all that it was given, and how often it is asked. */
const patience = 60_000
const every = 100

export const close = async (
  takeBooks: () => Promise<Books>,
  say: (line: string) => void,
  within = patience
): Promise<Books> => {
  const deadline = performance.now() + within
  let books = await takeBooks()
  if (!books.balanced) say(`The books do not balance yet: the broker may count late, and has ${within / 1000} s for it`)
  while (!books.balanced && performance.now() < deadline) {
    await sleep(every)
    books = await takeBooks()
  }
  return books
}
