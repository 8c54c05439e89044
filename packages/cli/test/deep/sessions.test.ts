/** The terminal sessions of every page of the documentation, but for the one that test/real replays. */
import { isJourney, replay } from "../real/sessions.ts"

replay((path, broker) => !isJourney(path, broker))
