/** A management interface that does not answer. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { createServer, type AddressInfo } from "node:net"
import * as Management from "../src/internal/inspect/management.ts"
import { decode } from "../src/RabbitMqOptions.ts"

it.live("the error of one that cannot be reached has the cause, and no password", () =>
  Effect.gen(function* () {
    // A port of which the only listener has ended.
    const port = yield* Effect.promise(
      () =>
        new Promise<number>((resume) => {
          const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address() as AddressInfo // It listens on TCP.
            server.close(() => resume(port))
          })
        })
    )
    const settings = Result.getOrThrow(decode({ management: `http://u:hunter2@127.0.0.1:${port}` }))
    const { message } = yield* Effect.flip((yield* Management.make(settings))!.queues)
    assert.match(message, /ConnectionFailed: .*ECONNREFUSED.*Check host and port in management/)
    assert.notInclude(message, "hunter2")
  })
)
