package backup

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
)

// Keys holds the keys to encrypt or to open a file. A recipient can only encrypt, so the program
// for backups holds no secret.
type Keys struct {
	// Recipients are public keys of age: age1...
	Recipients []string
	// RecipientsFile has such keys, one a line.
	RecipientsFile string
	// IdentityFile has private keys of age, to open a file.
	IdentityFile string
	// PassphraseFile has a passphrase in its first line.
	PassphraseFile string
}

// ErrNoKey is the error of an encryption without a key.
var ErrNoKey = errors.New("a backup has Secrets, and is always encrypted: give --recipient or --recipients-file (age-keygen " +
	"makes a key), or --passphrase-file")

// ForWriting returns the recipients of a new file.
func (k Keys) ForWriting() ([]age.Recipient, error) {
	var recipients []age.Recipient
	for _, text := range k.Recipients {
		parsed, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("--recipient is not a public key of age (age1...): %w", err)
		}
		recipients = append(recipients, parsed...)
	}
	if k.RecipientsFile != "" {
		file, err := os.Open(k.RecipientsFile)
		if err != nil {
			return nil, fmt.Errorf("reading --recipients-file: %w", err)
		}
		defer file.Close()
		parsed, err := age.ParseRecipients(file)
		if err != nil {
			return nil, fmt.Errorf("reading --recipients-file %s: %w", k.RecipientsFile, err)
		}
		recipients = append(recipients, parsed...)
	}
	switch {
	case k.PassphraseFile != "" && len(recipients) > 0:
		return nil, errors.New("--passphrase-file and recipients exclude each other: use one of the two")
	case k.PassphraseFile == "" && len(recipients) == 0:
		return nil, ErrNoKey
	case k.PassphraseFile == "":
		return recipients, nil
	}
	passphrase, err := k.passphrase()
	if err != nil {
		return nil, err
	}
	by, err := age.NewScryptRecipient(passphrase)
	return []age.Recipient{by}, err
}

// ForReading returns the identities to open a file.
func (k Keys) ForReading() ([]age.Identity, error) {
	switch {
	case (k.IdentityFile == "") == (k.PassphraseFile == ""):
		return nil, errors.New("give --identity with the file of the private key, or --passphrase-file")
	case k.PassphraseFile != "":
		passphrase, err := k.passphrase()
		if err != nil {
			return nil, err
		}
		by, err := age.NewScryptIdentity(passphrase)
		return []age.Identity{by}, err
	}
	file, err := os.Open(k.IdentityFile)
	if err != nil {
		return nil, fmt.Errorf("reading --identity: %w", err)
	}
	defer file.Close()
	identities, err := age.ParseIdentities(file)
	if err != nil { // the error of age may quote a part of a private key
		return nil, fmt.Errorf("reading --identity %s: it holds no private key of age (AGE-SECRET-KEY-1...)", k.IdentityFile)
	}
	return identities, nil
}

// passphrase reads the first line of the file.
func (k Keys) passphrase() (string, error) {
	text, err := os.ReadFile(k.PassphraseFile)
	if err != nil {
		return "", fmt.Errorf("reading --passphrase-file: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if first = strings.TrimRight(first, "\r"); first == "" {
		return "", fmt.Errorf("reading --passphrase-file: the first line of %s is empty", k.PassphraseFile)
	}
	return first, nil
}
