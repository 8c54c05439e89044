/**
 * Keeps a role that may receive, and may not settle, from running messages again and again: it asks whether it may delete
 * and hide, before the first poll and when a settlement was refused. While it may not, there are no polls.
 *
 * It asks with a receipt handle that is none, so that nothing happens in any case. Only a refusal counts: should SQS look
 * at the handle before the permission, the answer says nothing, and polls begin.
 */
import type { BrokerError, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Client } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { CallTrouble } from "./troubles.ts"

/** Whether a consumer may settle, as SQS said last. */
export interface Guard {
  /** Asks SQS, and goes on asking while it says no. */
  readonly check: Effect.Effect<void>
  /** A settlement has failed. */
  readonly failed: (error: BrokerError.BrokerError) => void
  readonly mayPoll: () => boolean
}

/** Milliseconds before the question is repeated; they double up to the longest. */
const [firstPause, longestPause] = [250, 10_000]

const none = [{ Id: "0", ReceiptHandle: "none" }]

/** Lets no poll pass before the first check. */
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

  /** The refusal of a call; `undefined` for whatever else comes of it. */
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
