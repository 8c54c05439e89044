/** Consumers that ignore their codec. */
import { Codec, QueueDefinition } from "@requeue/core"
import * as Effect from "effect/Effect"
import { rewiredMessage } from "../internal/rewired.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes the codec of every consumer. */
const codecs = (
  name: string,
  kills: string,
  change: <A>(codec: Codec.Codec<A, never>) => Codec.Codec<A, never>
): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    start: (queue, given, handler) => {
      const definition = QueueDefinition.from(queue)
      return subject.start({ ...definition, codec: change(definition.codec) }, given, handler)
    }
  })
})

export const mutants: ReadonlyArray<Mutant> = [
  codecs(
    "shows handlers no headers but the message's own",
    "a handler sees the headers that a codec finds in the body, and copies keep those of the message",
    (codec) => ({ ...codec, decodeMessage: undefined })
  ),
  codecs(
    "takes every error of a codec for the body's fault",
    "a codec that cannot decode yet is called again, as the policy says",
    (codec) => ({
      ...codec,
      decode: async (bytes, headers) => {
        try {
          return await codec.decode(bytes, headers)
        } catch (cause) {
          throw Object.assign(new TypeError("undecodable", { cause }), { permanent: true })
        }
      }
    })
  ),
  {
    name: "drains when its codecs have ended",
    kills: "a message that waits for its codec is returned at once, and has used up no attempt",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) => {
        const { codec, ...definition } = QueueDefinition.from(queue)
        return subject.start({ ...definition, codec: Codec.bytes }, given, (message, context) =>
          Effect.flatMap(
            Effect.promise(async () => codec.decode(message.body, message.headers)),
            (body) => {
              const result = handler(
                rewiredMessage<any>(message, () => ({ body })), // the bodies are the codec's
                context
              )
              return Effect.isEffect(result) ? result : Effect.promise(async () => result)
            }
          )
        )
      }
    })
  }
]
