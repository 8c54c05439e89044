/** The beginning of attacks: operators, and a console that has a letter. */
import * as Effect from "effect/Effect"
import { Authorization, type Console } from "../../src/index.ts"
import * as World from "../world.ts"

/** The operators, each with the role of its name. */
export const users = ["view", "bodies", "redrive", "purge"] as const
export const password = (name: string) => `${name}-has-this-password`
/** Their passwords. */
export const basic = Authorization.basic(users.map((name) => ({ name, password: password(name), role: name })))
/** The headers of one of them. */
export const as = (name: string, secret = password(name)) => ({
  headers: { authorization: `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}` }
})

/** A console with a letter, and its pages of the way to a redrive, for whoever may see them. */
export const prepared = (options: Partial<Console.Options> = {}, sent: World.Sent = {}) =>
  Effect.gen(function* () {
    const world = yield* World.make(options)
    yield* world.publish({ id: "order-1", body: "the-body" })
    const causes = yield* world.settled(World.deadLetters, sent)
    const cause = yield* world.get(World.linkTo(causes, "/group"), sent)
    const letter = yield* world.get(World.linkTo(cause, "/letter"), sent)
    /** The page of a dry run that has ended. */
    const planned = Effect.flatMap(world.submit(causes, "/plan", {}, sent), ({ headers }) =>
      world.settled(headers.get("location")!, sent)
    )
    return {
      ...world,
      causes,
      cause,
      letter,
      planned,
      left: Effect.map(world.broker.admin.counts("orders.dlq"), ({ ready }) => ready)
    }
  })

const token = ({ text }: World.Arrived): string => /name="token" value="([^"]+)"/.exec(text)![1]!

/** The fields of a redrive, as its form has them: that of the page of its dry run. */
export const redrive = (page: World.Arrived) => ({
  broker: "local",
  queue: "orders.dlq",
  how: "at-once",
  plan: /name="plan" value="([^"]+)"/.exec(page.text)?.[1] ?? "",
  token: token(page)
})
