/** Calls the codecs of sends in the producer's async context. */
import * as AsyncContext from "../../adapter-kit/AsyncContext.ts"
import * as Checks from "./checks.ts"
import type { Codec, Sealed } from "../../message/Codec.ts"
import * as Thenable from "../../message/internal/thenable.ts"
import type { Outgoing } from "../../message/Outgoing.ts"

export type Seal<A> = NonNullable<Codec<unknown, A>["seal"]>

export interface Encoding {
  /** Encodes a body. It throws an `EncodeError`. */
  readonly encode: <A>(codec: Codec<unknown, A>, queue: string, body: A) => Uint8Array
  /** Seals a body. It throws what the codec throws. */
  readonly seal: <A>(seal: Seal<A>, body: A, draft: Outgoing) => Sealed | Promise<Sealed>
}

export const make = (): Encoding => {
  const within = AsyncContext.capture()
  return {
    encode: (codec, queue, body) => within(() => Checks.encode(codec, queue, body)),
    seal: (seal, body, { headers, native }) =>
      within(() => {
        const sealing = seal(body, { headers, native })
        // A promise of its own kind begins in the same async context.
        return Thenable.is(sealing) ? Promise.resolve(sealing) : sealing
      })
  }
}
