/** Consumers that do not listen to their codec. */
import { type Codec, QueueDefinition } from "@requeue/core"
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
    (codec) => ({ ...codec, open: undefined })
  ),
  codecs(
    "takes every error of a codec for the body's fault",
    "a codec that says it cannot tell yet is asked again, as the policy says",
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
  )
]
