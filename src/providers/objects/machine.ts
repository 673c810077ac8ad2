/**
 * Whether the machine that this runs on may be asked for credentials, at an address that leads nowhere on most machines: only
 * where the operator says so, in the variable that the official client has for it.
 */
export function mayAskMachine(): boolean {
  const { METADATA_SERVER_DETECTION: detection = '' } = process.env
  return !/^(?:|none)$/i.test(detection.trim())
}
