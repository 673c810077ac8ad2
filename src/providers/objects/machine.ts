/**
 * Whether the metadata service of this machine may be asked for credentials, whose address leads nowhere on most machines: only if the
 * operator enables it, in the variable of the official client.
 */
export function mayAskMachine(): boolean {
  const { METADATA_SERVER_DETECTION: detection = '' } = process.env
  return !/^(?:|none)$/i.test(detection.trim())
}
