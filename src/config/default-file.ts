/** The file name of the configuration that is used when none is named. */
export const defaultConfig = 'hikidashi.json'
