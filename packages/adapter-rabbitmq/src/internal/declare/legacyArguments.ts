/**
 * Queues of ours that were made under former settings. The arguments of a queue that exists cannot be changed, and none of
 * those that depend on settings is needed to be as they are now: with any delivery limit, either type, and any exchange of
 * ours for the server's own dead letters, a policy holds. So such a queue is used with the arguments that it has. Of queues
 * that are neither work queues nor dead-letter queues, only the type may differ. A queue with other differences is somebody else's, or has arguments that people have given, and stays refused. Pure.
 */
import * as Names from "../names.ts"
import type { Arguments, NativeQueue } from "./objects.ts"
import * as Refusal from "./refusal.ts"

/** The arguments by which the two types of queues of ours differ; the limit is one of a kind. */
const ofQuorum: Arguments = {
  "x-queue-type": "quorum",
  "x-dead-letter-strategy": "at-least-once",
  "x-overflow": "reject-publish"
}

/** Whether a queue is a work queue or a dead-letter queue of ours, by the arguments that it has or is to have. */
export const isHome = ({ arguments: args, name }: Pick<NativeQueue, "arguments" | "name">): boolean =>
  args["x-dead-letter-routing-key"] === name && Names.isDead(String(args["x-dead-letter-exchange"]))

/** The queue of the other type. The delivery limit of a quorum queue is asked for by a limit of 1. */
const ofOtherType = ({ arguments: args, ...queue }: NativeQueue): NativeQueue => {
  const { "x-delivery-limit": limit, ...others } = args
  if (args["x-queue-type"] !== "quorum")
    return { ...queue, arguments: { ...args, ...ofQuorum, "x-delivery-limit": limit ?? 1 } }
  const rest = Object.fromEntries(Object.entries(others).filter(([name]) => !(name in ofQuorum)))
  return { ...queue, arguments: { ...rest, "x-queue-type": "classic" } }
}

/** A queue without some of its arguments. */
const without = (queue: NativeQueue, isLeftOut: (name: string) => boolean): NativeQueue => ({
  ...queue,
  arguments: Object.fromEntries(Object.entries(queue.arguments).filter(([name]) => !isLeftOut(name)))
})

/**
 * The queue as it may be by the server's words on why it is not like `queue`; `undefined` where no former settings of ours
 * explain that. It must be declared to be sure. `hasOther` tells that the other type has been tried.
 */
export const next = (queue: NativeQueue, refusal: string, hasOther: boolean): NativeQueue | undefined => {
  const told = Refusal.parse(refusal)
  if (told === undefined) return undefined
  const { name, value } = told
  const type = queue.arguments["x-queue-type"]
  // Classic queues were once declared without a type, and the virtual host's default made quorum queues of some.
  if (name === "x-queue-type" && value === undefined && type === "classic") return without(queue, (one) => one === name)
  if (!isHome(queue))
    return name === "x-queue-type" && value === "quorum" && type === "classic"
      ? { ...queue, arguments: { ...queue.arguments, [name]: value } }
      : undefined
  const limit = Number(value)
  if (name === "x-delivery-limit" && value !== undefined && Number.isSafeInteger(limit))
    return { ...queue, arguments: { ...queue.arguments, [name]: limit } }
  if (name === "x-dead-letter-exchange" && typeof value === "string" && Names.isDead(value))
    return { ...queue, arguments: { ...queue.arguments, [name]: value } }
  const isOfQuorum = (one: string) => one === "x-delivery-limit" || (one in ofQuorum && one !== "x-queue-type")
  if (isOfQuorum(name) && value === undefined && hasOther && type === "quorum" && name in queue.arguments)
    return without(queue, isOfQuorum)
  return (name in ofQuorum || name === "x-delivery-limit") && !hasOther ? ofOtherType(queue) : undefined
}

/** The settings that a queue keeps from when it was made, in words; empty where it is as it would be made now. */
export const kept = (there: Arguments, planned: Arguments): ReadonlyArray<string> =>
  ["x-queue-type", "x-delivery-limit", "x-dead-letter-exchange"].flatMap((name) => {
    const [was, is] = [there[name], planned[name]].map((value) =>
      name === "x-queue-type" ? (value ?? "classic") : value
    )
    return was === is ? [] : [`${name}=${String(was ?? "none")}`]
  })
