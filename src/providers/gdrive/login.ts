/** How Google is shown who asks. */
export type Credentials =
  /** A person, who has allowed it by `hikidashi auth gdrive`. */
  | { readonly kind: 'person'; readonly client: OAuthClient; readonly tokenFile: string }
  /** A service account: its key as JSON, and whom it stands for, if it is delegated. */
  | { readonly kind: 'service'; readonly key: string; readonly subject?: string }
  /** The application default credentials. */
  | { readonly kind: 'default' }

/** What Google knows this program by. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string | undefined
}
