/** Keys that requests are signed with, as the store gives them out. */
export interface Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}
