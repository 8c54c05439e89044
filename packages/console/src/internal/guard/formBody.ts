/** Reads the fields of a form, up to a size limit. */
import * as Effect from "effect/Effect"
import { Refusal } from "../refusal.ts"

/** The size limit of a form without a body, in bytes: it has names of queues, an id, and a token. */
const standard = 16 * 1024

const tooLarge = (limit: number) =>
  new Refusal({ status: 413, detail: `a form has at most ${limit} bytes`, remedy: "Nothing was done" })

const read = async (request: Request, limit: number): Promise<Uint8Array | undefined> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    // The end of the loop cancels the rest, which is not read.
    if (size > limit) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Reads the fields of a form, up to its limit. */
export const of = (request: Request, limit = standard): Effect.Effect<URLSearchParams, Refusal> =>
  Effect.gen(function* () {
    const type = request.headers.get("content-type") ?? ""
    if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type)) {
      return yield* new Refusal({
        status: 415,
        detail: "the content type must be that of a form",
        remedy: "Send a form"
      })
    }
    if (Number(request.headers.get("content-length") ?? 0) > limit) return yield* tooLarge(limit)
    const bytes = yield* Effect.tryPromise({
      try: () => read(request, limit),
      catch: () => new Refusal({ status: 400, detail: "the form did not arrive", remedy: "Send the form again" })
    })
    return bytes === undefined ? yield* tooLarge(limit) : new URLSearchParams(new TextDecoder().decode(bytes))
  })
