import { setTimeout as sleep } from "node:timers/promises"

/** Enough for any machine, and for a broker that must be fetched first. */
const minutes = 5

/** Waits for what a test needs; if it does not come, fails with what it was. */
export const inTime = <A>(promise: Promise<A>, what: () => string): Promise<A> =>
  Promise.race([
    promise,
    sleep(minutes * 60_000, undefined, { ref: false }).then(() => {
      throw new Error(`not within ${minutes} minutes: ${what()}`)
    })
  ])
