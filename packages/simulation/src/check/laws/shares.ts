/** Shares: the messages of a queue with the same `fairBy`. Those without one are a share without limits. */
import type { Version } from "../../Scenario.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { CopyLife, DeliveryLife, Lives, ProcessLife } from "../internal/Lives.ts"
import { slack } from "../internal/timing.ts"
import type { Violation } from "../Violation.ts"

/** Milliseconds by which a window of deliveries is longer than the limit says: a handler may begin that much later. */
const margin = 50

/** The length of the window of a share; `undefined`: it has no rate. */
export const windowOf = (limits: Version["shareLimits"]): number | undefined =>
  limits?.rateLimit && limits.rateLimit.per + margin

const shareOf = ({ message }: CopyLife): string | undefined => message.plan?.share

/** The deliveries to programs, in the order in which the file gave them. */
const handedOut = (lives: Lives): ReadonlyArray<DeliveryLife> =>
  [...lives.deliveries.values()]
    .filter((life) => life.handedOut !== undefined && life.process.version !== undefined && isWork(lives, life))
    .toSorted((a, b) => indexOf(a) - indexOf(b))

const indexOf = ({ handedOut }: DeliveryLife): number => handedOut!.index

/** When each delivery has ended, by the file: when its copy has left, or is back. A power cut ends it by forgetting the copy. */
const endsOf = ({ copies, history }: Lives): ReadonlyMap<number, number> => {
  const ends = new Map<number, number>()
  for (const [index, entry] of history.entries()) {
    if (entry._tag !== "Gone" && entry._tag !== "Back") continue
    for (const { delivery, handedOut } of copies.get(entry.copy)?.deliveries ?? []) {
      if (handedOut !== undefined && handedOut.index < index && !ends.has(delivery)) ends.set(delivery, index)
    }
  }
  return ends
}

/** A power cut undoes what a file knows of earlier deliveries. */
const lastCut = ({ history }: Lives, index: number): number =>
  history.findLastIndex((entry, nth) => nth < index && entry._tag === "Rebooted")

const exceeded = (lives: Lives, all: ReadonlyArray<DeliveryLife>): ReadonlyArray<Violation> => {
  const ends = endsOf(lives)
  return all.flatMap((life) => {
    const { concurrency, rateLimit } = life.process.version?.shareLimits ?? {}
    const [share, index, { at }] = [shareOf(life.copy), indexOf(life), life.handedOut!.entry]
    if (share === undefined) return []
    const before = all.filter((each) => shareOf(each.copy) === share && indexOf(each) < index)
    const out = before.filter(({ delivery }) => (ends.get(delivery) ?? Infinity) > index)
    const found = (what: string, others: ReadonlyArray<DeliveryLife>) => [
      violation("shares", at, of(life), `The file delivered a message of ${share} ${what}.`, [
        ...others.map(indexOf),
        index
      ])
    ]
    if (concurrency !== undefined && out.length >= concurrency)
      return found(`while consumers had ${out.length} others; expected ${concurrency} at most`, out)
    if (rateLimit === undefined) return []
    const since = lastCut(lives, index)
    const recent = before.filter(
      (each) => indexOf(each) > since && at - each.handedOut!.entry.at < windowOf({ rateLimit })! - slack
    )
    return recent.length < rateLimit.max
      ? []
      : found(`after ${recent.length} others in its window; expected ${rateLimit.max} at most`, recent)
  })
}

/** How many claims may get messages of one share while a message of another waits. */
const most = 2

const isTrue = ({ plan }: ProcessLife): boolean =>
  plan !== undefined && plan.clock.offset === 0 && plan.clock.speed === 1 && plan.clock.jumps.length === 0

/** The claims that got messages, by share. The file gives the messages of a claim one after the other, and nothing comes between. */
const claimsOf = (taken: ReadonlyArray<DeliveryLife>): ReadonlyMap<string | undefined, ReadonlySet<number>> => {
  const claims = new Map<string | undefined, Set<number>>()
  let [claim, last] = [0, 0]
  for (const life of taken) {
    const [share, index] = [shareOf(life.copy), indexOf(life)]
    if (index !== last + 1) claim = index
    last = index
    claims.set(share, (claims.get(share) ?? new Set()).add(claim))
  }
  return claims
}

/** A share that gets nothing while a consumer without limits takes messages of another one repeatedly. */
const starved = (lives: Lives, all: ReadonlyArray<DeliveryLife>): ReadonlyArray<Violation> =>
  [...lives.copies.values()].flatMap((copy) => {
    const { deliveries, gone, message, stored } = copy
    if (stored === undefined || !lives.work.has(stored.entry.queue) || stored.entry.due > stored.entry.at) return []
    // A message waits for the others of its key.
    if (message.plan === undefined || message.plan.group !== undefined) return []
    const until = Math.min(deliveries[0]?.handedOut?.index ?? Infinity, gone?.index ?? Infinity)
    const meanwhile = all.filter((each) => indexOf(each) > stored.index && indexOf(each) < until)
    return [...new Set(meanwhile.map(({ process }) => process))].flatMap((process) => {
      if (process.version?.shareLimits !== undefined || !isTrue(process)) return []
      const claims = claimsOf(meanwhile.filter((each) => each.process === process))
      const other = [...claims].find(([, its]) => its.size > most)
      if (claims.has(shareOf(copy)) || other === undefined) return []
      const what = `${process.name} took messages of ${other[0] ?? "no one"} ${other[1].size} times while one of ${shareOf(copy) ?? "no one"} waited; expected ${most} times at most.`
      return [violation("shares", stored.entry.at, { key: message.key, process: process.name }, what, [stored.index])]
    })
  })

/** Of each share, consumers have no more messages than its limits allow, and no share gets nothing while another one does. */
export const shares: Law = (lives) => {
  if (!lives.scenario.sendings.some(({ share }) => share !== undefined)) return []
  const all = handedOut(lives)
  return [...exceeded(lives, all), ...starved(lives, all)]
}
