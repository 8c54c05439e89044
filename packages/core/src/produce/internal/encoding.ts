/** Calls the codecs of sends in the producer's async context, and warns about values that JSON changes silently. */
import * as Effect from "effect/Effect"
import * as AsyncContext from "../../runtime/AsyncContext.ts"
import * as Checks from "./checks.ts"
import type { Codec, EncodedMessage } from "../../message/Codec.ts"
import * as Losses from "../../message/internal/losses.ts"
import * as Thenable from "../../message/Thenable.ts"
import type { Outgoing } from "../../message/Outgoing.ts"
import * as Log from "../../port/Log.ts"

export type EncodeMessage<A> = NonNullable<Codec<unknown, A>["encodeMessage"]>

export interface Encoding {
  /** Throws an `EncodeError`. */
  readonly encode: <A>(codec: Codec<unknown, A>, queue: string, body: A) => Uint8Array
  /** Throws the codec's error. */
  readonly encodeMessage: <A>(
    seal: EncodeMessage<A>,
    body: A,
    draft: Outgoing
  ) => EncodedMessage | Promise<EncodedMessage>
}

/** The most queues whose first loss is logged; further queues are not checked. */
const loggedQueues = 100

export const make: Effect.Effect<Encoding> = Effect.gen(function* () {
  const within = AsyncContext.capture()
  const fork = Effect.runForkWith(yield* Effect.context())
  const logged = new Set<string>()

  const watching = <A>(queue: string, call: () => A): A => {
    if (logged.has(queue) || logged.size >= loggedQueues) return within(call)
    const onLoss = ({ detail, path }: Losses.Loss): void => {
      if (logged.has(queue)) return
      logged.add(queue)
      const message = `${path} is ${detail}: convert it before the send, or give the queue a codec or a schema`
      fork(Log.warning(`${message}; further ones are not logged`, { queue }))
    }
    return within(Losses.watch<A>, onLoss, call)
  }

  return {
    encode: (codec, queue, body) => watching(queue, () => Checks.encode(codec, queue, body)),
    encodeMessage: (seal, body, { headers, native, queue }) =>
      watching(queue, () => {
        const sealing = seal(body, { headers, native })
        // Another library's promise starts in the same async context.
        return Thenable.is(sealing) ? Promise.resolve(sealing) : sealing
      })
  }
})
