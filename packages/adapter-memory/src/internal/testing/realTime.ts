/** The process's own timers, as they were before a test runner replaced them, and turns of the event loop by them. */
import * as Scheduler from "effect/Scheduler"

const { clearImmediate, setImmediate } = globalThis
const now = performance.now.bind(performance)

/**
 * Throws when a test runner has replaced `setImmediate`: Effect would take that, and wait for the test runner's clock.
 */
export const verify = (): void => {
  if (globalThis.setImmediate === setImmediate) return
  throw new Error(
    "Testing.open: fake timers replace setImmediate, which Requeue needs to start. " +
      "Open the broker before them, or leave them off: it has a clock of its own"
  )
}

const turn = (): Promise<void> => new Promise((resume) => void setImmediate(resume))

/** Waits for the work, `timeout` milliseconds at most, and answers whether it has ended. */
export const within = async (timeout: number, work: Promise<unknown>): Promise<boolean> => {
  let ended = false
  void work.then(() => (ended = true))
  // Turn by turn, so that no timer is needed that a test runner could have replaced.
  for (const start = now(); !ended && now() - start < timeout; ) await turn()
  return ended
}

/** Turns of the event loop, and a scheduler that runs fibers in them. */
export interface Turns {
  /** The scheduler of every fiber that is to be waited for. */
  readonly scheduler: Scheduler.Scheduler
  /** Resolves with true when no fiber has work left, with false when they never come to rest. */
  readonly rest: () => Promise<boolean>
}

/** Turns without work after which all is at rest: more than one, since promises run beside the scheduler. */
const quietTurns = 3

/** Milliseconds of real time after which fibers that always have work are given up. */
const restTimeout = 2000

/** No fiber is scheduled yet. */
export const make = (): Turns => {
  let scheduled = 0
  const scheduler = new Scheduler.MixedScheduler("async", (task) => {
    scheduled++
    const immediate = setImmediate(() => {
      scheduled--
      task()
    })
    return () => {
      scheduled--
      clearImmediate(immediate)
    }
  })
  return {
    scheduler,
    rest: async () => {
      const start = now()
      for (let quiet = 0; quiet < quietTurns; quiet = scheduled > 0 ? 0 : quiet + 1) {
        if (now() - start > restTimeout) return false
        await turn()
      }
      return true
    }
  }
}
