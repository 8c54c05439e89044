/** One order, as four libraries describe it; each gives what it can as an asynchronous schema as well. */
import { type } from "arktype"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as v from "valibot"
import * as z from "zod"

/** Times are text on the wire, and dates for handlers. */
const date = (text: string) => new Date(text)

const zod = z.object({ items: z.array(z.object({ price: z.number() })), at: z.string().transform(date) })

const valibot = v.object({
  items: v.array(v.object({ price: v.number() })),
  at: v.pipe(v.string(), v.transform(date))
})

const arktype = type({ items: type({ price: "number" }).array(), at: type("string").pipe(date) })

const Time = Schema.String.pipe(
  Schema.decodeTo(Schema.Date, {
    decode: SchemaGetter.transform(date),
    encode: SchemaGetter.transform((time: Date) => time.toISOString())
  })
)
const effect = Schema.toStandardSchemaV1(
  Schema.Struct({ items: Schema.Array(Schema.Struct({ price: Schema.Number })), at: Time })
)

/** By the library's name. */
export const orders = { zod, valibot, arktype, effect } as const

/** Texts of which the code `taken` is refused, later. */
export const later = {
  zod: z.object({ code: z.string().refine(async (code) => code !== "taken", "is taken") }),
  valibot: v.objectAsync({
    code: v.pipeAsync(
      v.string(),
      v.checkAsync(async (code) => code !== "taken", "is taken")
    )
  }),
  effect: Schema.toStandardSchemaV1(
    Schema.Struct({
      code: Schema.String.pipe(
        Schema.decodeTo(
          Schema.String,
          SchemaTransformation.transformEffect({
            decode: (code: string) => Effect.as(Effect.sleep(1), code),
            encode: (code: string) => Effect.succeed(code)
          })
        ),
        Schema.check(Schema.makeFilter((code: string) => (code === "taken" ? "is taken" : undefined)))
      )
    })
  )
} as const
