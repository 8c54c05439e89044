/** The conditions of connections to nsqd, by the world's rates. */
import type { Rates } from "../Scenario.ts"
import { type Break, type Caller, type Conditions, silence } from "../servers/nsq/Conditions.ts"
import type { World } from "../world/World.ts"

/** The longest time for which an nsqd does not read from a connection, in milliseconds. */
const slowest = 20_000

/** The probability that an end notices at once that a connection is broken. */
const quick = 0.6

/** The part of the requests that may fail. A process makes several until it has started, and rarely would otherwise. */
const exposed = 0.25

const isPublish = (name: string): boolean => name.endsWith("PUB")

const host = (target: string): string => target.replace("http://", "").split(":")[0]!

/** Makes the conditions of a connection, or of a request. The caller's purpose begins with its process. */
export const of =
  ({ draw, fault, latency }: World) =>
  ({ clientId, purpose }: Caller, target: string): Conditions => {
    const place = `${purpose} ${host(target)}`
    const isRequest = clientId === undefined
    const isExposed = !isRequest || draw.chance(`${place} exposed`, exposed)
    const happens = (...kinds: ReadonlyArray<keyof Rates>): boolean => kinds.some((kind) => fault(kind, place))
    return {
      takes: (way, command) => {
        // A client moves its credit many times in a second: RDY would always be late.
        const isRdy = command?.name === "RDY"
        const isLate = (isRequest ? isExposed : way === "up" && !isRdy) && fault("late", place)
        // Most often for a moment only.
        return latency(place) + (isLate ? slowest * draw.unit(`${place} slow`) ** 3 : 0)
      },
      breaks: (way) => {
        if (!isRequest) return fault("cut", `${place} ${way}`)
        return isExposed && happens("cut", way === "up" ? "lostRequest" : "lostAnswer")
      },
      how: (): Break => {
        const silent = latency(place)
        const isQuick = (end: string): boolean => draw.chance(`${place} ${end} quick`, quick)
        return {
          silent,
          client: isQuick("process") ? silent + latency(place) : undefined,
          server: silent + (isQuick("broker") ? latency(place) : draw.between(`${place} broker notices`, 0, silence))
        }
      },
      fails: ({ name }) => {
        if (!isPublish(name)) return undefined
        if (fault("lostRequest", place)) return "lostRequest"
        if (fault("busy", place)) return "refused"
        return fault("lostAnswer", place) ? "lostAnswer" : undefined
      }
    }
  }
