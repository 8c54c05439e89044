/** The driver as the adapter sees it, for simulated servers and tests. */
export {
  type Channel,
  type ConfirmChannel,
  Driver,
  type DriverConnection,
  type Incoming,
  type Listener,
  type Page
} from "./internal/client.ts"
