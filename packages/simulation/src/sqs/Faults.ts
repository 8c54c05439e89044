/** Faults of calls of SQS, by the world's rates. */
import type * as Api from "../servers/sqs/Api.ts"
import { type AwsError, invalidParameter, named } from "../servers/sqs/AwsError.ts"
import type * as Faults from "../servers/sqs/Faults.ts"
import type { Options } from "../servers/sqs/Server.ts"
import type { Rates, Refusal } from "../Scenario.ts"
import * as Parcel from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"

/** The names of calls among the faults. */
const verbs: Readonly<Record<string, string>> = {
  ReceiveMessage: "receive",
  SendMessageBatch: "send",
  DeleteMessageBatch: "remove",
  ChangeMessageVisibilityBatch: "hide"
}

/** Maximum milliseconds of a late message, until the driver repeats a call, and of a fault. */
const longest = { late: 30_000, repeats: 1000, fault: 30_000 }

/** The probability that a fault lasts. */
const lasts = 0.5

const throttled = { _tag: "refused", error: "ThrottlingException" } as const

const placeOf = ({ action, client, queue }: Api.Call): string =>
  `${client} ${verbs[action] ?? action} ${Names.inWorld(queue)}`

/** A connection breaks before the call is done, after it, or on the way of a request that still arrives. */
const cut = ({ draw }: World, place: string): Faults.Effect => {
  const at = draw.unit(`${place} cut`)
  if (at < 0.3) return { _tag: "brokenRequest" }
  if (at < 0.6) return { _tag: "brokenAnswer" }
  return { _tag: "late", millis: draw.between(`${place} cut behind`, 0, longest.late) }
}

/** A fault of the world, and what it does to a call. */
interface Found {
  readonly kind: keyof Rates
  readonly effect: Faults.Effect
}

/** The fault of one attempt of a call. */
const ofAttempt =
  (world: World) =>
  (call: Api.Call, place: string): Found | undefined => {
    const { draw, fault } = world
    const late = (): number => (fault("late", place) ? draw.between(`${place} late`, 0, longest.late) : 0)
    if (fault("busy", place)) return { kind: "busy", effect: throttled }
    if (fault("cut", place)) return { kind: "cut", effect: cut(world, place) }
    // The driver repeats no change of visibility.
    if (call.action !== "ChangeMessageVisibilityBatch" && fault("twice", place)) {
      const millis = draw.between(`${place} again`, 0, longest.repeats)
      return { kind: "twice", effect: { _tag: "late", millis } }
    }
    if (fault("lostRequest", place)) return { kind: "lostRequest", effect: { _tag: "lostRequest" } }
    if (fault("lostAnswer", place)) return { kind: "lostAnswer", effect: { _tag: "lostAnswer" } }
    const [millis, answer] = [late(), late()]
    return millis + answer > 0 ? { kind: "late", effect: { _tag: "slow", millis, answer } } : undefined
  }

/**
 * Makes the faults of calls. Driver and adapter repeat a call that fails: some faults last for all calls of their place, or hardly
 * any would be seen above them.
 */
export const ofCalls = (world: World, isBusy: () => boolean) => {
  const { draw, isCalm, now, record } = world
  const attempt = ofAttempt(world)
  const lasting = new Map<string, Found & { readonly until: number }>()
  return (call: Api.Call): Faults.Effect | undefined => {
    if (isBusy()) return throttled
    const place = placeOf(call)
    const before = lasting.get(place)
    if (before !== undefined && now() < before.until && !isCalm()) {
      const { effect, kind } = before
      record({ _tag: "Fault", site: `${kind} ${place} lasts`, kind })
      return effect
    }
    const found = attempt(call, place)
    if (found !== undefined && draw.chance(`${place} lasts`, lasts))
      lasting.set(place, { ...found, until: now() + draw.between(`${place} until`, 0, longest.fault) })
    return found?.effect
  }
}

const errors: Readonly<Record<Refusal["reason"], AwsError>> = {
  BodyTooLarge: invalidParameter(
    "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."
  ),
  Unroutable: named.InvalidMessageContents,
  AccessRefused: named.KmsAccessDenied
}

/** Makes the failures of single entries. */
export const ofEntries =
  (world: World): NonNullable<Options["refuses"]> =>
  (call, entry) => {
    // A producer outside repeats until its message is stored.
    if (call.client === undefined) return undefined
    const reason =
      call.action === "SendMessageBatch"
        ? Parcel.refusal(world, Names.inWorld(call.queue), Parcels.fromEntry(entry))
        : undefined
    if (reason !== undefined) return errors[reason]
    return world.fault("busy", `${placeOf(call)} entry`) ? named.ThrottlingException : undefined
  }

/** How often a receive returns few messages, or in disorder. */
const chance = 0.5

/** Makes the unkindness of standard queues. */
export const unkindness =
  ({ draw, fault }: World): NonNullable<Options["happens"]> =>
  (what, name) => {
    const queue = Names.inWorld(name)
    switch (what) {
      case "few":
      case "disorder":
        return draw.chance(`${what} ${queue}`, chance)
      case "repeat":
        return fault("echo", `receive ${queue}`)
      case "echo":
        return fault("echo", `remove ${queue}`)
    }
  }
