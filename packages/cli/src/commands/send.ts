/** `requeue send`: sends one message from an argument, a file or standard input. */
import { type Codec, Delay, Producer, QueueDefinition } from "@requeue/core"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { buffer } from "node:stream/consumers"
import * as DurationFlag from "../DurationFlag.ts"
import { Output } from "../Output.ts"
import { Process } from "../Process.ts"
import * as Target from "../Target.ts"
import * as TextFlag from "../TextFlag.ts"
import { UsageError } from "../UsageError.ts"

const flags = {
  ...Target.flags,
  body: Argument.String("body").pipe(
    Argument.withDescription("The body. Without it and --file, it is read from standard input"),
    Argument.optional
  ),
  file: TextFlag.make("file").pipe(
    Flag.withAlias("f"),
    Flag.withMetavar("FILE"),
    Flag.withDescription("A file with the body"),
    Flag.optional
  ),
  raw: Flag.Boolean("raw").pipe(Flag.withDescription("Also accept bytes that are not JSON"), Flag.withDefault(false)),
  header: TextFlag.make("header").pipe(
    Flag.withAlias("H"),
    Flag.withMetavar("NAME=VALUE"),
    Flag.withDescription("A header; can be repeated"),
    Flag.atLeast(0)
  ),
  delay: DurationFlag.make("delay", Delay.max).pipe(
    Flag.withDescription("Time until the first delivery"),
    Flag.optional
  ),
  id: TextFlag.make("id").pipe(Flag.withDescription("The message's id. Default: a random UUID"), Flag.optional),
  key: TextFlag.make("key").pipe(
    Flag.withDescription("Messages with the same key are handled in order. Default: no order"),
    Flag.optional
  ),
  fairBy: TextFlag.make("fair-by").pipe(
    Flag.withDescription("Whose message it is: consumers take those of each value in turn"),
    Flag.optional
  )
}

/** Makes a codec that does not change bytes. */
const codec = (raw: boolean): Codec.Codec<Uint8Array> => ({
  contentType: raw ? undefined : "application/json",
  encode: (bytes) => bytes,
  decode: (bytes) => bytes
})

const read = Effect.fnUntraced(function* (body: Option.Option<string>, file: Option.Option<string>) {
  if (Option.isSome(body) && Option.isSome(file)) {
    return yield* new UsageError({ detail: "a body and --file do not go together", remedy: "Give one of them" })
  }
  if (Option.isSome(body)) return Buffer.from(body.value)
  const { cwd, stdin } = yield* Process
  if (Option.isNone(file)) return yield* Effect.promise(() => buffer(stdin))
  const path = resolve(cwd(), file.value)
  return yield* Effect.tryPromise({
    try: () => readFile(path),
    catch: (error) => {
      // With the given name, not with the absolute path.
      const detail = `--file: ${String(error).replace(path, () => file.value)}`
      return new UsageError({ detail, remedy: "Give a file that can be read" })
    }
  })
})

const verify = (bytes: Uint8Array): Effect.Effect<void, UsageError> =>
  Effect.try({
    try: () => void JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
    catch: () =>
      new UsageError({
        detail: "the body is not JSON, and consumers of JSON would dead-letter it",
        remedy: `Write, for example, '{"id":1}', or give --raw`
      })
  })

const headersOf = (given: ReadonlyArray<string>): Effect.Effect<Record<string, string>, UsageError> => {
  const entries: Array<readonly [string, string]> = []
  for (const text of given) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (name === undefined || value === undefined) {
      return Effect.fail(new UsageError({ detail: `--header: ${text} has no value`, remedy: "Write name=value" }))
    }
    entries.push([name, value])
  }
  return Effect.succeed(Object.fromEntries(entries))
}

export const send = Command.make("send", flags, ({ body, delay, fairBy, file, header, id, key, raw, ...rest }) =>
  Effect.gen(function* () {
    const { result } = yield* Output
    const target = yield* Target.resolve(rest)
    const [queue, ...others] = target.queues
    if (queue === undefined || others.length > 0) {
      return yield* new UsageError({ detail: "a message goes to one queue", remedy: "Give --queue once" })
    }
    const headers = yield* headersOf(header)
    const bytes = yield* read(body, file)
    if (!raw) yield* verify(bytes)
    const definition = QueueDefinition.make(queue.name, { codec: codec(raw) })
    const sent = yield* Effect.provide(
      Effect.flatMap(Producer.make(definition), (producer) =>
        producer.send(bytes, {
          headers,
          delay: Option.getOrUndefined(delay),
          id: Option.getOrUndefined(id),
          key: Option.getOrUndefined(key),
          fairBy: Option.getOrUndefined(fairBy)
        })
      ),
      Target.layer(target)
    )
    yield* result({ broker: target.name, queue: queue.name, id: sent }, () => `sent ${sent} to ${queue.name}`)
  })
).pipe(
  Command.withDescription(
    "Sends one message, and ends when the broker has confirmed it. The body must be JSON unless --raw is given."
  ),
  Command.withShortDescription("Send a message"),
  Command.withExamples([
    { command: `requeue send --queue orders '{"id":1}'`, description: "From the command line" },
    { command: "requeue send -q orders --file order.json --delay 10m -H tenant=a", description: "From a file, later" },
    { command: "requeue send --url amqp://localhost -q images --raw < cat.png", description: "From standard input" }
  ])
)
