/** A user's handler, whose runs are written down. */
import type { Handler } from "@requeue/core"
import type { Machine } from "../world/Machine.ts"
import { mark } from "../world/Parcels.ts"
import { keyHeader } from "../world/Store.ts"
import type { World } from "../world/World.ts"

type Body = any // It is what the user's handler says it is.

type Own = (message: Handler.Received<Body>, context: Handler.Context) => unknown

/** The handler, observed. */
export const watched =
  (world: World, { name }: Machine, handler: Own): Handler.MessageHandler<Body> =>
  async (message, context) => {
    const run = world.number()
    const { attempts, headers } = message
    const given = [{ key: Number(headers[keyHeader]), delivery: Number(headers[mark]), attempts }]
    world.record({ _tag: "Began", process: name, run, given })
    try {
      await handler(message, context)
      world.record({ _tag: "Ended", process: name, run, how: "returned", error: undefined })
    } catch (error) {
      world.record({ _tag: "Ended", process: name, run, how: "threw", error: "error" })
      throw error
    }
  }
