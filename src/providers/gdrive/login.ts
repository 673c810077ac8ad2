/** Credentials for Google. */
export type Credentials =
  /** A person who has allowed access by `hikidashi auth gdrive`. */
  | { readonly kind: 'person'; readonly client: OAuthClient; readonly tokenFile: string }
  /** A service account: its key as JSON, and the user it impersonates, if access is delegated. */
  | { readonly kind: 'service'; readonly key: string; readonly subject?: string }
  /** The application default credentials. */
  | { readonly kind: 'default' }

/** The OAuth client registration of this program. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string | undefined
}
