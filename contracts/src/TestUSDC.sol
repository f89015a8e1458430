// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

/// @title Test USDC
/// @notice A worthless token for development chains that behaves like Circle's FiatToken v2.2: 6 decimals,
/// EIP-2612 permits and EIP-3009 authorizations, signed under the EIP-712 domain ("USD Coin", "2", chain, token).
/// @dev Signatures may come from a key or, through ERC-1271, from a contract account.
contract TestUSDC is ERC20, EIP712, Nonces, Ownable {
    string private constant VERSION = "2";

    /// @notice EIP-712 type of an EIP-2612 permit.
    bytes32 public constant PERMIT_TYPEHASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    /// @notice EIP-712 type of an authorization that anyone may submit.
    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    /// @notice EIP-712 type of an authorization that only the recipient may submit.
    bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    /// @notice EIP-712 type of the cancellation of an unused authorization.
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
        keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    /// @notice Whether an authorizer's nonce has been used or cancelled. A nonce is only unique per authorizer.
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;

    /// @notice An authorization was used; its Transfer is the log that follows.
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    /// @notice An authorization was cancelled before it was used.
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    /// @notice The signature is not the named account's.
    error InvalidSignature();

    /// @notice The permit's deadline has passed.
    error PermitExpired(uint256 deadline);

    /// @notice The block is not younger than validAfter.
    error AuthorizationNotYetValid(uint256 validAfter);

    /// @notice The block is not older than validBefore.
    error AuthorizationExpired(uint256 validBefore);

    /// @notice The nonce has been used or cancelled.
    error AuthorizationUsedOrCanceled(address authorizer, bytes32 nonce);

    /// @notice A receive authorization was not submitted by its recipient.
    error CallerMustBePayee(address caller, address payee);

    /// @param owner The account that may mint.
    constructor(address owner) ERC20("USD Coin", "USDC") EIP712("USD Coin", VERSION) Ownable(owner) {}

    /// @notice Minor units per unit, as a power of ten.
    function decimals() public pure override returns (uint8) {
        return 6;
    }

    /// @notice The EIP-712 domain's version.
    function version() external pure returns (string memory) {
        return VERSION;
    }

    /// @notice The EIP-712 domain's hash.
    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return _domainSeparatorV4();
    }

    /// @notice Mints `amount` minor units for `to`.
    function mint(address to, uint256 amount) external onlyOwner {
        _mint(to, amount);
    }

    /// @notice EIP-2612.
    function permit(
        address owner,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        permit(owner, spender, value, deadline, abi.encodePacked(r, s, v));
    }

    /// @notice EIP-2612 with a signature of any length, for contract accounts.
    function permit(address owner, address spender, uint256 value, uint256 deadline, bytes memory signature)
        public
    {
        if (block.timestamp > deadline) revert PermitExpired(deadline);
        _requireSignature(
            owner, keccak256(abi.encode(PERMIT_TYPEHASH, owner, spender, value, _useNonce(owner), deadline)), signature
        );
        _approve(owner, spender, value);
    }

    /// @notice EIP-3009: moves `value` with the payer's signature, whatever account submits it.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    /// @notice EIP-3009 with a signature of any length, for contract accounts.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public {
        _useAuthorization(
            TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature
        );
    }

    /// @notice EIP-3009: like transferWithAuthorization, but only the recipient may submit it, so that no other account
    /// can use it up outside of the recipient's transaction.
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        receiveWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    /// @notice EIP-3009 with a signature of any length, for contract accounts.
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public {
        if (msg.sender != to) revert CallerMustBePayee(msg.sender, to);
        _useAuthorization(
            RECEIVE_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature
        );
    }

    /// @notice EIP-3009: cancels an unused authorization.
    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        cancelAuthorization(authorizer, nonce, abi.encodePacked(r, s, v));
    }

    /// @notice EIP-3009 with a signature of any length, for contract accounts.
    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) public {
        _spendNonce(authorizer, nonce);
        _requireSignature(
            authorizer, keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), signature
        );
        emit AuthorizationCanceled(authorizer, nonce);
    }

    /// @dev Validity is strict at both ends, as in Circle's contract.
    function _useAuthorization(
        bytes32 typeHash,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        if (block.timestamp <= validAfter) revert AuthorizationNotYetValid(validAfter);
        if (block.timestamp >= validBefore) revert AuthorizationExpired(validBefore);
        _spendNonce(from, nonce);
        _requireSignature(
            from, keccak256(abi.encode(typeHash, from, to, value, validAfter, validBefore, nonce)), signature
        );
        emit AuthorizationUsed(from, nonce);
        _transfer(from, to, value);
    }

    function _spendNonce(address authorizer, bytes32 nonce) private {
        if (authorizationState[authorizer][nonce]) revert AuthorizationUsedOrCanceled(authorizer, nonce);
        authorizationState[authorizer][nonce] = true;
    }

    function _requireSignature(address signer, bytes32 structHash, bytes memory signature) private view {
        if (!SignatureChecker.isValidSignatureNow(signer, _hashTypedDataV4(structHash), signature)) {
            revert InvalidSignature();
        }
    }
}
