/**
 * Nacks of a queue that is gone. A full queue nacks, and so does one that somebody deletes while messages are on their way into
 * it: those are not stored. https://www.rabbitmq.com/docs/confirms#server-sent-nacks
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Declarer } from "../declare/declare.ts"
import type { NativeObject } from "../declare/objects.ts"

/** Succeeds where a queue of these objects is gone; fails with the error of the nack where all are there, or nobody can tell. */
export const gone = (
  { onChannel }: Pick<Declarer, "onChannel">,
  objects: ReadonlyArray<NativeObject>,
  queue: string,
  nack: BrokerError.BrokerError
): Effect.Effect<void, BrokerError.BrokerError> =>
  onChannel("publish", queue, async (channel) => {
    for (const object of objects) if (object._tag === "Queue") await channel.checkQueue(object.name)
  }).pipe(
    Effect.matchEffect({
      onFailure: ({ reason }) => (reason === "QueueMissing" ? Effect.void : Effect.fail(nack)),
      onSuccess: () => Effect.fail(nack)
    })
  )
