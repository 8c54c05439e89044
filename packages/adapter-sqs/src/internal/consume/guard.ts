/**
 * Prevents a role that may receive but not settle from running the same messages repeatedly. Checks the permissions to
 * delete and hide before the first poll, and after a refused settlement. Without them the consumer does not poll.
 *
 * The check uses an invalid receipt handle, so it changes nothing. Only a refusal counts: if SQS checks the handle
 * first, the response is inconclusive and polls begin.
 */
import type { BrokerError, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Client } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { CallTrouble } from "./troubles.ts"

/** Whether a consumer may settle, by SQS's last response. */
export interface Guard {
  /** Asks SQS, and repeats while it refuses. */
  readonly check: Effect.Effect<void>
  /** A settlement has failed. */
  readonly failed: (error: BrokerError.BrokerError) => void
  readonly mayPoll: () => boolean
}

/** Milliseconds before the check is repeated; doubled up to the longest. */
const [firstPause, longestPause] = [250, 10_000]

const none = [{ Id: "0", ReceiptHandle: "none" }]

/** Makes a guard that allows no poll before the first check. */
export const make = (env: {
  readonly client: Pick<Client, "deleteMessageBatch" | "changeMessageVisibilityBatch">
  readonly queue: string
  readonly url: () => string
  readonly timers: Timers.Timers
  readonly trouble: CallTrouble
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Polls may begin. */
  readonly onOpen: () => void
}): Guard => {
  const { client, fork, queue, timers, trouble, url } = env
  let isOpen = false
  let isAsking = false
  let pause = firstPause

  /** Returns the refusal of a call; `undefined` for any other result. */
  const refusal = (run: () => Promise<unknown>): Effect.Effect<BrokerError.BrokerError | undefined> =>
    Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation: "settle", queue }) }).pipe(
      Effect.as(undefined),
      Effect.catch((error) => Effect.succeed(error.reason === "AccessRefused" ? error : undefined))
    )

  const ask = Effect.gen(function* () {
    isAsking = true
    const hidden = none.map((entry) => ({ ...entry, VisibilityTimeout: 0 }))
    const [deletes, hides] = yield* Effect.all(
      [
        refusal(() => client.deleteMessageBatch({ QueueUrl: url(), Entries: none })),
        refusal(() => client.changeMessageVisibilityBatch({ QueueUrl: url(), Entries: hidden }))
      ],
      { concurrency: "unbounded" }
    )
    const refused = deletes ?? hides
    isOpen = refused === undefined
    if (refused !== undefined) {
      trouble.failed(refused)
      timers.after(pause, () => fork(ask))
      pause = Math.min(2 * pause, longestPause)
      return
    }
    isAsking = false
    pause = firstPause
    trouble.over()
    env.onOpen()
  })

  return {
    check: ask,
    failed: (error) => {
      if (error.reason !== "AccessRefused" || isAsking) return
      isAsking = true
      fork(ask)
    },
    mayPoll: () => isOpen
  }
}
