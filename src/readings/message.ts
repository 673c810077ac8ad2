export interface StoredMessage {
  readonly subject: string
  /** The headers that are shown, such as `From`. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly html?: string
  readonly text?: string
  /** The text in Rich Text Format, decompressed. */
  readonly rtf?: Uint8Array
  readonly attachments: readonly AttachedPart[]
}

export interface AttachedPart {
  readonly name: string
  readonly mimeType: string
  /** Returns the bytes of the attachment, or a message that Outlook stores in parts within the message. */
  readonly open: () => Uint8Array | StoredMessage
}
