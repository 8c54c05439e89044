/** The credit of a subscription: how many deliveries the broker may have unsettled with this consumer. */
import type { Timers } from "../../adapter-kit/Timers.ts"
import type { Subscription } from "../../port/Broker.ts"

export interface Credit {
  /** Gives the broker the credit that is wanted now, unless it has that credit already. */
  readonly update: () => void
  /**
   * Gives a new connection its credit, whatever the lost one had. While `recover` runs, no credit is given: before all
   * that it changes is changed, the credit could be too much.
   */
  readonly renew: (recover: () => void) => void
}

export interface Dependencies {
  readonly subscription: Pick<Subscription, "credit">
  readonly wanted: () => number
  readonly timers: Pick<Timers, "after">
  readonly onDefect: (error: unknown) => void
}

/** Milliseconds until an adapter that threw is given its credit again. */
const againAfter = 1000

/** The subscription starts with a credit of 0. */
export const make = ({ onDefect, subscription, timers, wanted }: Dependencies): Credit => {
  let given = 0
  let recovering = false

  const update = (): void => {
    const credit = wanted()
    if (credit === given || recovering) return
    given = credit
    try {
      subscription.credit(credit)
    } catch (error) {
      given = -1
      timers.after(againAfter, update)
      onDefect(error)
    }
  }

  return {
    update,
    renew: (recover) => {
      recovering = true
      recover()
      recovering = false
      given = -1
      update()
    }
  }
}
