import { describe } from "../internal/Allowed.ts"
import { isForged, knownUnseen, lifeOf, mostAt } from "../internal/counting.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { Lives, Settling } from "../internal/Lives.ts"

/** Reasons that need no handler run. */
const unread = new Set(["undecodable", "too-many-deliveries"])

const faultOf = (lives: Lives, { asked, attempt: { decided }, index, of: life }: Settling): string | undefined => {
  const { version } = life.process
  const { reason, tag } = asked
  // A decision on another delivery of the attempt was checked there.
  if (decided !== undefined && decided.index < index && decided.asked.reason === reason) return undefined
  if (version === undefined || (tag !== "DeadLetter" && tag !== "Drop")) return undefined
  if (reason === "too-many-deliveries") {
    const told = (life.arrived?.entry.attempts ?? 0) - knownUnseen(lives, life)
    const most = isForged(life) ? told : Math.min(told, mostAt(lives, life))
    return most > version.maxDeliveries
      ? undefined
      : `only ${most} deliveries that may count, and ${version.maxDeliveries} allowed`
  }
  // A codec that never answers uses up attempts as well.
  const body = life.copy.message.plan?.body
  if (unread.has(reason ?? "") || body === "neverDecoded" || body === "slowToDecode") return undefined
  const isSeen = lifeOf(lives, life).some(({ runs }) => runs.some(({ began }) => began.index < index))
  // A redelivery replaces one whose handler ran.
  const isRun = life.process.attempts.some(({ copy, turns }) => copy === life.copy && turns.length > 0)
  return isSeen || isRun ? undefined : "no handler that had begun it"
}

/** No message is dead-lettered without a handler run, unless it was delivered more often than `maxDeliveries`. */
export const unseen: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    return attempt.settlings.flatMap((settling) => {
      const fault = faultOf(lives, settling)
      if (fault === undefined) return []
      const shown = lifeOf(lives, settling.of).map(({ handedOut }) => handedOut?.index)
      const what = `${attempt.process.name} asked for ${describe(settling.asked)} with ${fault}; expected another run.`
      return [violation("unseen", settling.at, of(settling.of), what, [...shown, settling.index])]
    })
  })
