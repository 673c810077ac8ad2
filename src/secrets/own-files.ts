/** The default names of the files with credentials that hikidashi itself writes, in lower case. */
export const ownCredentialFiles = {
  /** Hashes of the tokens of callers. */
  tokens: 'hikidashi-tokens.json',
  /** The tokens with which a mount reads Google Drive. */
  driveToken: 'gdrive-token.json',
} as const
