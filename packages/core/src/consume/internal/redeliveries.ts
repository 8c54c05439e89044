/**
 * Deliveries that are lost with their connection or lease, and redeliveries of the same copy. A redelivery takes the place
 * of one whose handler still runs; else the settlement that was decided is repeated on it.
 */
import * as Settlement from "../../message/Settlement.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Flow } from "./flow.ts"
import type { Item, Load, Outlet } from "./item.ts"
import * as Remembered from "./remembered.ts"
import type { Runtime } from "./runtime.ts"

export interface Redeliveries {
  /**
   * Tells what is known of a redelivery. `"merged"`: it has taken the place of a delivery whose handler runs, or whose
   * settlement is under way, and needs nothing more.
   */
  readonly recognise: (delivery: Delivery) => Remembered.Known | "merged" | undefined
  readonly markLost: (item: Item) => void
  /** Removes a delivery that is not ours any more. Its settlement, if there is one, is repeated on its redelivery. */
  readonly lose: (item: Item) => void
  /** Acks a redelivery of a message that has been settled. */
  readonly echo: (again: Delivery, settled: Item) => void
}

export interface Dependencies extends Pick<Runtime, "wallClock"> {
  readonly outlet: Outlet
  /** Whether the broker has leases, so that it may deliver again what is still in flight. */
  readonly isLeased: boolean
  readonly flow: Pick<Flow, "update">
  readonly load: Load
  /** All deliveries in flight. */
  readonly items: Iterable<Item>
  readonly remove: (item: Item) => void
  readonly onRemoved: () => void
  /** Takes a delivery in, and settles it. `told` is what the broker said of its attempts. */
  readonly settle: (delivery: Delivery, told: number, settlement: Settlement.Settlement, isEcho: boolean) => void
}

export const make = (dependencies: Dependencies): Redeliveries => {
  const { flow, isLeased, items, load, onRemoved, outlet, remove, settle, wallClock } = dependencies
  const identify = (delivery: Delivery) => outlet.subscription?.identify?.(delivery)
  const remembered = Remembered.make(identify)

  /** The delivery in flight of the same copy. Without leases, only a lost one can have been delivered again. */
  const twinOf = (delivery: Delivery): Item | undefined => {
    const name = isLeased || load.lost > 0 ? identify(delivery) : undefined
    if (name === undefined) return undefined
    for (const item of items) {
      if ((isLeased || item.isLost) && item.delivery !== delivery && identify(item.delivery) === name) return item
    }
    return undefined
  }

  const merge = (item: Item, delivery: Delivery): boolean => {
    if (item.stage === "settling") {
      // What goes back to the queue comes again by right.
      const isEnd = item.settlement?._tag !== "Retry" && item.settlement?._tag !== "Release"
      if (isEnd) item.again = delivery
      return isEnd
    }
    item.delivery = Remembered.continued(delivery, { told: item.told, attempts: item.delivery.attempts })
    item.told = delivery.attempts
    if (item.isLost) {
      item.isLost = false
      load.lost--
      flow.update()
    }
    return true
  }

  const repeat = (again: Delivery, { delivery, told }: Item, settlement: Settlement.Settlement, isEcho: boolean) =>
    settle(Remembered.continued(again, { told, attempts: delivery.attempts }), again.attempts, settlement, isEcho)

  return {
    recognise: (delivery) => {
      const twin = twinOf(delivery)
      if (twin !== undefined && merge(twin, delivery)) return "merged"
      return remembered.isEmpty() ? undefined : remembered.take(delivery, wallClock())
    },
    markLost: (item) => {
      if (item.isLost) return
      item.isLost = true
      load.lost++
    },
    lose: (item) => {
      const { again, settlement } = item
      if (item.place === -1) return
      remove(item)
      if (again !== undefined && settlement !== undefined) repeat(again, item, settlement, false)
      else if (twinOf(item.delivery) === undefined) remembered.add(item, wallClock())
      onRemoved()
    },
    echo: (again, settled) => repeat(again, settled, Settlement.Ack, true)
  }
}
