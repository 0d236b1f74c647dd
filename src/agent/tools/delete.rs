//! `delete_file`: removes a file.
