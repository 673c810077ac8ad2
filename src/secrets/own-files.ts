export const ownCredentialFiles = {
  tokens: 'hikidashi-tokens.json',
  driveToken: 'gdrive-token.json',
} as const
