/** Sends by a codec with `encodeMessage`, which may take time to store data elsewhere before the message is sent. */
import * as Effect from "effect/Effect"
import * as Checks from "./checks.ts"
import type { Encoding, EncodeMessage } from "./encoding.ts"
import type { EncodedMessage } from "../../message/Codec.ts"
import * as Delay from "../../message/Delay.ts"
import * as Thenable from "../../message/Thenable.ts"
import { EncodeError } from "../../message/EncodeError.ts"
import type { Outgoing } from "../../message/Outgoing.ts"
import type { QueueDefinition } from "../../message/QueueDefinition.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import type { Capabilities } from "../../port/Capabilities.ts"

export interface Sealing {
  /** Encodes messages whose other parts are checked, and sends them. */
  readonly within: <A, B, E>(
    seal: EncodeMessage<A>,
    entries: ReadonlyArray<Checks.BatchEntry<A>>,
    drafts: ReadonlyArray<Outgoing>,
    send: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<B, E>
  ) => Effect.Effect<B, E | Checks.SendError>
  readonly ended: Effect.Effect<void>
}

const nothing = new Uint8Array()

/** How many messages of one call are encoded at a time. */
const concurrency = 10

/** A definition whose messages have no body yet. */
export const unsealed = <A>(definition: QueueDefinition<unknown, A>): QueueDefinition<unknown, A> => ({
  ...definition,
  codec: { ...definition.codec, encode: () => nothing }
})

/** `timeout` limits the codec, in milliseconds. */
export const make = (
  capabilities: Capabilities,
  timeout: Delay.Delay,
  encoding: Pick<Encoding, "encodeMessage">
): Sealing => {
  const { enter, ended } = counting()

  const sealed = <A>(
    seal: EncodeMessage<A>,
    body: A,
    draft: Outgoing
  ): Effect.Effect<Outgoing, BrokerError | EncodeError> =>
    Effect.try({
      try: () => encoding.encodeMessage(seal, body, draft),
      catch: (cause) => Checks.unencodable(draft.queue, cause)
    }).pipe(
      // Synchronous results keep the order of sends.
      Effect.flatMap((result) => (Thenable.is(result) ? awaited(result, draft) : Effect.succeed(result))),
      Effect.flatMap((result) => finish(draft, result, capabilities))
    )

  const awaited = (
    sealing: PromiseLike<EncodedMessage>,
    { queue }: Outgoing
  ): Effect.Effect<EncodedMessage, EncodeError> =>
    Effect.tryPromise({ try: () => sealing, catch: (cause) => Checks.unencodable(queue, cause) }).pipe(
      Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(late(queue, timeout)) })
    )

  return {
    within: (seal, entries, drafts, send) =>
      Effect.suspend(() => {
        const leave = enter()
        const all = Effect.forEach(
          drafts,
          (draft, index) =>
            Effect.mapError(sealed(seal, entries[index]!.body, draft), (error) =>
              Checks.ofEntry(entries, index, error)
            ),
          { concurrency }
        )
        return Effect.ensuring(Effect.flatMap(all, send), Effect.sync(leave))
      }),
    ended
  }
}

/** The message with the codec's result. */
const finish = (draft: Outgoing, { body, headers, native }: EncodedMessage, capabilities: Capabilities) =>
  Effect.try({
    try: (): Outgoing => ({
      ...draft,
      body: Checks.size(draft.queue, body, capabilities),
      headers: Object.freeze({ ...Checks.headers(draft.queue, headers) }),
      native
    }),
    catch: (error) =>
      error instanceof BrokerError || error instanceof EncodeError ? error : Checks.unencodable(draft.queue, error)
  })

const late = (queue: string, timeout: Delay.Delay): EncodeError =>
  new EncodeError({
    queue,
    field: "body",
    detail: `the codec did not encode the message within ${Delay.format(timeout)}; nothing was sent`,
    remedy: "Send the message again later, or raise publishTimeout"
  })

/** Counts sends in flight. */
const counting = () => {
  let count = 0
  const waiting = new Set<() => void>()
  return {
    enter: () => {
      count++
      return () => {
        count--
        if (count === 0) for (const resume of waiting) resume()
      }
    },
    ended: Effect.callback<void>((resume) => {
      const end = () => resume(Effect.void)
      if (count === 0) return end()
      waiting.add(end)
      return Effect.sync(() => waiting.delete(end))
    })
  }
}
