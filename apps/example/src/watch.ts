/** Redraws the screen until something is over. */
import { setTimeout as sleep } from "node:timers/promises"
import { line, lines, type Snapshot } from "./progress.ts"
import type { Screen } from "./screen.ts"

/** Milliseconds between two frames. */
const interval = 100

export const watch = async (screen: Screen, snapshot: () => Snapshot, isOver: () => boolean): Promise<void> => {
  for (;;) {
    // Checked before the frame is drawn, so the last frame shows the end.
    const over = isOver()
    const now = snapshot()
    screen.draw(
      () => lines(now, screen.paint),
      () => line(now),
      over
    )
    if (over) return
    await sleep(interval)
  }
}
