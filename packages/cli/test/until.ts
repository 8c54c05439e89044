/** Waits that end when what is waited for is so, on any machine; should it never be, the error says what it was. */
import { setTimeout as sleep } from "node:timers/promises"
import { assert, vi } from "vitest"

/** Milliseconds. */
export const deadline = 120_000

export const until = (what: string, isSo: () => boolean | Promise<boolean>): Promise<void> =>
  vi.waitFor(async () => assert.isTrue(await isSo(), `${deadline / 1000} s were not enough for this: ${what}`), {
    interval: 20,
    timeout: deadline
  })

/** What the work comes to. */
export const within = async <A>(work: Promise<A>, what: () => string): Promise<A> => {
  const end = new AbortController()
  const late = sleep(deadline, undefined, { signal: end.signal }).then(() => {
    throw new Error(`${deadline / 1000} s were not enough for this: ${what()}`)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    end.abort()
  }
}
